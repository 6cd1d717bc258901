"""Slide topics of the demo corpus: terms, what each does, and a quantity. Pure content, read from topics/*.yaml."""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

SUBJECT_FILES = {
    "Anatomy": "anatomy",
    "Biology": "biology",
    "Machine learning": "machine_learning",
    "Mathematics": "mathematics",
    "Psychology": "psychology",
}


@dataclass(frozen=True)
class Term:
    """One entity of a topic with the relation that the lecture teaches: `name` `relation` `target`."""

    name: str
    relation: str
    target: str


@dataclass(frozen=True)
class Topic:
    subject: str
    title: str
    quantity: str
    unit: str
    low: int
    high: int
    terms: tuple[Term, ...]


def package_yaml(*path: str) -> Any:
    """A YAML file of this package."""
    import yaml

    text = resources.files("ad4edu_train.demo").joinpath(*path).read_text(encoding="utf-8")
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _topic(subject: str, line: str) -> Topic:
    title, measure, terms = line.split(" | ")
    quantity, unit, low, high = measure.split(", ")
    parsed = tuple(Term(*(part.strip() for part in term.split(" > "))) for term in terms.split(" ; "))
    return Topic(subject, title, quantity, unit, int(low), int(high), parsed)


@cache
def library() -> dict[str, tuple[Topic, ...]]:
    """All topics by subject, in the order of the files."""
    return {
        subject: tuple(_topic(subject, line) for line in package_yaml("topics", f"{name}.yaml"))
        for subject, name in SUBJECT_FILES.items()
    }
