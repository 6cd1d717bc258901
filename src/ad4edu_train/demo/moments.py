"""The moments of a demo corpus: which lecture, which slide, which prompt, which keyframes."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from random import Random

from ad4edu_train.demo import raters
from ad4edu_train.demo.allocation import SUBJECTS, MomentPlan, allocate
from ad4edu_train.demo.context import prompt
from ad4edu_train.demo.facts import Slide, build_slide
from ad4edu_train.demo.topics import Topic, library

CURSOR_SHARE = 0.7


@dataclass(frozen=True)
class Settings:
    """moments: number of test_human moments; the rest of the corpus scales with it."""

    moments: int = 80
    seed: int = 0
    null_labels: bool = False
    scale: str = "moments"


@dataclass(frozen=True)
class Moment:
    plan: MomentPlan
    moment_id: str
    time_s: float
    slide: Slide
    prompt: str
    prompt_id: str
    frames: tuple[str, ...]
    tastes: tuple[raters.Taste, ...]


def split_topics(seed: int, plans: list[MomentPlan]) -> dict[tuple[str, str], Iterator[Topic]]:
    """Topics of each (split, subject), no topic in both splits, in endless random order."""
    result: dict[tuple[str, str], Iterator[Topic]] = {}
    for subject in SUBJECTS:
        topics = list(library()[subject])
        Random(f"topics/{seed}/{subject}").shuffle(topics)
        n_test = sum(plan.split == "test" for plan in plans if plan.subject == subject)
        n_all = sum(plan.subject == subject for plan in plans)
        share = 0.0 if n_test == 0 else min(0.5, max(0.2, n_test / n_all))
        cut = round(share * len(topics))
        result["test", subject], result["train", subject] = cycle(topics[:cut]), cycle(topics[cut:])
    return result


def build_moments(settings: Settings) -> tuple[list[Moment], dict[str, bool]]:
    """All moments, and whether each lecture's recording renders a cursor."""
    seed, plans = settings.seed, allocate(settings.moments, settings.seed)
    topics = split_topics(seed, plans)
    lectures = sorted({plan.lecture for plan in plans})
    cursor = {lecture: Random(f"cursor/{seed}/{lecture}").random() < CURSOR_SHARE for lecture in lectures}
    lecture_taste = {name: raters.Taste.draw(raters.LECTURE_SPREAD, Random(f"taste/{seed}/{name}")) for name in lectures}
    clock = {
        lecture: iter(
            sorted(Random(f"clock/{seed}/{lecture}").sample(range(30, 4200), sum(p.lecture == lecture for p in plans)))
        )
        for lecture in lectures
    }
    moments = []
    for plan in Random(f"order/{seed}").sample(plans, len(plans)):
        time_s = float(next(clock[plan.lecture]))
        moment_id = f"{plan.lecture}-{int(time_s):05d}"
        rng = Random(f"moment/{seed}/{moment_id}")
        slide = build_slide(next(topics[plan.split, plan.subject]), plan.types[0], cursor[plan.lecture], rng)
        text = prompt(slide, rng)
        frames = tuple(f"keyframes/{plan.lecture}/{int(time_s):05d}-{k}.jpg" for k in range(rng.choice((1, 2, 2, 3))))
        tastes = (lecture_taste[plan.lecture], raters.Taste.draw(raters.MOMENT_SPREAD, rng))
        prompt_id = hashlib.sha256(text.encode()).hexdigest()
        moments.append(Moment(plan, moment_id, time_s, slide, text, prompt_id, frames, tastes))
    return sorted(moments, key=lambda moment: (moment.plan.lecture, moment.time_s)), cursor
