"""Four synthetic BLV raters, two machine annotators and a video judge. They see what a description conveys, never its words.

Utility, noise and thresholds are in points. Raters differ by weights, share a taste within a moment and a lecture, and tie.
"""

import math
from dataclasses import dataclass
from random import Random

from ad4edu_train.demo.candidates import Conveyed

RATER_NOISE = 1.25
RATER_TIE = 0.30
NO_ANSWER = 0.01
WEIGHT_SPREAD = 0.35  # log-normal spread of a rater's weights
MOMENT_SPREAD = 0.30
LECTURE_SPREAD = 0.15

JUDGE_SHARED_NOISE = 0.9
JUDGE_ORDER_NOISE = 0.93
JUDGE_FIRST_BONUS = 0.15
JUDGE_LENGTH_BONUS = 0.92  # points for the longer side, saturating at about four words
JUDGE_TIE = 0.025
JUDGE_UNPARSED = 0.003


@dataclass(frozen=True)
class Weights:
    referent: float = 0.8
    new: float = 0.85
    said: float = -0.4
    false: float = -0.8
    over: float = -0.5  # a second beyond the pause, up to four
    style: float = -0.8
    vague: float = -0.8
    brief: float = -0.9  # nothing said beyond the referent


@dataclass(frozen=True)
class Taste:
    """What a moment or a lecture makes everybody value a little more or less: points for each fact kind, and for a word."""

    kinds: tuple[float, ...]
    word: float

    @classmethod
    def draw(cls, spread: float, rng: Random) -> "Taste":
        return cls(tuple(rng.gauss(0, spread) for _ in range(4)), rng.gauss(0, spread / 12))


def rater_weights(name: str, seed: int) -> Weights:
    """An individual's weights: the common ones, each scaled by a log-normal factor."""
    rng = Random(f"weights/{seed}/{name}")
    return Weights(**{key: value * math.exp(rng.gauss(0, WEIGHT_SPREAD)) for key, value in vars(Weights()).items()})


def utility(seen: Conveyed, weights: Weights, tastes: tuple[Taste, ...]) -> float:
    """How much a listener gets from a description, in points."""
    points = weights.referent * seen.referent
    points += weights.new * seen.new + weights.said * seen.said + weights.false * seen.false
    points += weights.over * min(seen.over_s, 4.0)
    points += weights.style * seen.style_fault + weights.vague * seen.vague_term
    points += weights.brief * (seen.new + seen.said + seen.false == 0)
    for taste in tastes:
        points += sum(value * count for value, count in zip(taste.kinds, seen.kinds, strict=True)) + taste.word * seen.words
    return points


def rate(a: Conveyed, b: Conveyed, weights: Weights, tastes: tuple[Taste, ...], rng: Random) -> str | None:
    """One rater's answer on a pair: option_a, option_b, tie, or None where the answer is missing."""
    gap = utility(a, weights, tastes) - utility(b, weights, tastes) + rng.gauss(0, RATER_NOISE)
    if rng.random() < NO_ANSWER:
        return None
    if abs(gap) < RATER_TIE:
        return "tie"
    return "option_a" if gap > 0 else "option_b"


def human_winner(answers: list[str | None]) -> str | None:
    """Majority of the raters who decided; None on an even split or when nobody decided."""
    gap = answers.count("option_a") - answers.count("option_b")
    return None if gap == 0 else ("option_a" if gap > 0 else "option_b")


def judge(a: Conveyed, b: Conveyed, tastes: tuple[Taste, ...], rng: Random) -> str:
    """The judge's verdict over both presentation orders: a, b, flip, tie or unparsed."""
    gap = utility(a, Weights(), tastes) - utility(b, Weights(), tastes) + rng.gauss(0, JUDGE_SHARED_NOISE)
    gap += JUDGE_LENGTH_BONUS * math.tanh((a.words - b.words) / 4)
    a_first = gap + JUDGE_FIRST_BONUS + rng.gauss(0, JUDGE_ORDER_NOISE)
    b_first = gap - JUDGE_FIRST_BONUS + rng.gauss(0, JUDGE_ORDER_NOISE)
    if rng.random() < JUDGE_UNPARSED:
        return "unparsed"
    if abs(a_first) < JUDGE_TIE or abs(b_first) < JUDGE_TIE:
        return "tie"
    if (a_first > 0) != (b_first > 0):
        return "flip"
    return "a" if gap > 0 else "b"


REASONS = {
    "option_a": (
        "Option a says more of what the slide shows.",
        "Option a suits the moment better.",
        "Option b leaves more out.",
    ),
    "option_b": (
        "Option b says more of what the slide shows.",
        "Option b suits the moment better.",
        "Option a leaves more out.",
    ),
    "tie": ("Both serve the listener about equally.", "Neither is clearly better."),
}


def machine_choice(a: Conveyed, b: Conveyed, weights: Weights, tastes: tuple[Taste, ...], rng: Random) -> str:
    """A machine annotator's choice: noisier than a rater and fond of long sides."""
    gap = utility(a, weights, tastes) - utility(b, weights, tastes) + 0.05 * (a.words - b.words) + rng.gauss(0, 1.6)
    return "tie" if abs(gap) < 0.2 else ("option_a" if gap > 0 else "option_b")
