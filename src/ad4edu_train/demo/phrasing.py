"""Fills wording templates of phrases.yaml with facts, and keeps the train and test wordings apart."""

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

from ad4edu_train.demo.facts import Fact, Slide
from ad4edu_train.demo.topics import package_yaml


@cache
def phrases() -> Any:
    """The wording file as nested dicts and lists."""
    return package_yaml("phrases.yaml")


def families() -> tuple[str, ...]:
    """Keys of the synthetic families, which exist in both splits with different wordings."""
    return tuple(phrases()["ads"]["train"])


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def fill(template: str, **slots: str) -> str:
    """The template with its slots; {E} stands for the value of {e} with a capital first letter."""
    capitals = {capital(name): capital(value) for name, value in slots.items()}
    return capital(template.format(**slots, **capitals))


def fact_slots(fact: Fact, slide: Slide, name: str | None = None) -> dict[str, str]:
    """Slots that state a fact; `name` replaces the entity's own name. No slot of another kind is offered."""
    slot = {"rel": "rel", "val": "v", "pos": "pos", "col": "col"}[fact.kind]
    return {"e": name or fact.entity, "unit": slide.topic.unit, slot: fact.value}


def with_words(options: Sequence[str], n_words: int, rng: Random) -> str:
    """An option whose number of words is nearest to n_words, at random among equals."""
    best = min(abs(len(option.split()) - n_words) for option in options)
    return rng.choice([option for option in options if abs(len(option.split()) - n_words) == best])
