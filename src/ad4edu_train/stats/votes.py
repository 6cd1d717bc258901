"""Choices on pairs as whole numbers, and the majorities over them. Pure functions; one coding for raters, judges and predictors."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Choices = NDArray[np.int64]

# In this order they are ordinal: the first side, no preference, the second side. NONE: no vote, no winner, an abstention.
FIRST, TIE, SECOND, NONE = 0, 1, 2, -1
CATEGORIES = 3


def choices_of(preferences: Iterable[float | None]) -> Choices:
    """Signed preferences as choices: positive is the first side, 0 a tie, None or NaN an abstention. (pairs,)"""
    values = np.array([np.nan if value is None else value for value in preferences], dtype=np.float64)
    return np.select([values > 0, values < 0, values == 0], [FIRST, SECOND, TIE], NONE)


def majority(votes: Choices) -> Choices:
    """The side that most deciding raters chose; a tie is no vote. NONE where they split evenly or nobody decided.

    votes (pairs, raters) -> (pairs,)
    """
    margin = (votes == FIRST).sum(axis=1) - (votes == SECOND).sum(axis=1)
    return np.select([margin > 0, margin < 0], [FIRST, SECOND], NONE)


def plurality(votes: Choices) -> Choices:
    """The most frequent choice with the tie as a choice like the sides. NONE where two are most frequent, or nobody voted.

    votes (pairs, raters) -> (pairs,)
    """
    counts = np.stack([(votes == choice).sum(axis=1) for choice in range(CATEGORIES)], axis=1)
    most = counts.max(axis=1, initial=0)
    alone = (counts == most[:, None]).sum(axis=1) == 1
    return np.where(alone & (most > 0), counts.argmax(axis=1), NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """A predictor against winners, counted once and read in three ways. Pairs without a winner stand in no denominator.

    pairs = directed + no_winner; directed = agree + disagree + ties + abstained. Ties and abstentions are the predictor's.
    """

    pairs: int
    directed: int
    agree: int
    disagree: int
    ties: int
    abstained: int

    @property
    def decided_only(self) -> tuple[int, int]:
        """(agreements, pairs on which the predictor decided)."""
        return self.agree, self.agree + self.disagree

    @property
    def ties_fail(self) -> tuple[int, int]:
        """(agreements, directed pairs): a tie or an abstention is a failure."""
        return self.agree, self.directed

    @property
    def half_credit(self) -> tuple[float, int]:
        """(agreements + ties / 2, directed pairs): a tie is half right; an abstention is still a failure."""
        return self.agree + self.ties / 2, self.directed


def readings(winners: Choices, predictions: Choices) -> Readings:
    """Count predictions against winners, both (pairs,). A winner is FIRST or SECOND, or NONE."""
    directed = winners != NONE
    said, truth = predictions[directed], winners[directed]
    sides = (said == FIRST) | (said == SECOND)
    return Readings(
        pairs=len(winners),
        directed=int(directed.sum()),
        agree=int((said == truth).sum()),
        disagree=int((sides & (said != truth)).sum()),
        ties=int((said == TIE).sum()),
        abstained=int((said == NONE).sum()),
    )


def vote_splits(votes: Choices) -> list[str]:
    """How the deciding raters of each pair split, the larger side first: "4-0", "3-1", "1-0" (one vote), "2-2", "0-0" (all ties).

    votes (pairs, raters) -> one a pair
    """
    first, second = (votes == FIRST).sum(axis=1), (votes == SECOND).sum(axis=1)
    larger, smaller = np.maximum(first, second), np.minimum(first, second)
    return [f"{more}-{less}" for more, less in zip(larger.tolist(), smaller.tolist(), strict=True)]


def agreement_with_votes(votes: Choices, predictions: Choices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of the deciding votes of each pair: those for the predicted side, and all of them; none where no side was predicted.

    votes (pairs, raters), predictions (pairs,) -> two of (pairs,). Their sums give the mean agreement with individual votes.
    """
    decided = (votes == FIRST) | (votes == SECOND)
    said = ((predictions == FIRST) | (predictions == SECOND))[:, None]
    alike = said & decided & (votes == predictions[:, None])
    return alike.sum(axis=1), (said & decided).sum(axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NullWinners:
    """Why pairs have no winner: every vote a tie, the deciding raters split evenly, or no vote at all."""

    all_tie: int
    even_split: int
    no_vote: int


def null_winners(votes: Choices) -> NullWinners:
    """Count pairs without a majority by reason; votes (pairs, raters)."""
    first, second = (votes == FIRST).sum(axis=1), (votes == SECOND).sum(axis=1)
    undecided = (first == 0) & (second == 0)
    voted = (votes != NONE).any(axis=1)
    return NullWinners(
        all_tie=int((undecided & voted).sum()),
        even_split=int(((first == second) & (first > 0)).sum()),
        no_vote=int((~voted).sum()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """How often two choose alike. same of both_voted counts the tie as a choice; same_side of both_decided leaves ties out."""

    both_voted: int
    same: int
    both_decided: int
    same_side: int
    kappa: float | None


def together(one: Choices, other: Choices) -> Together:
    """Pairwise agreement and Cohen's kappa (1960) over the three choices; pairs that either did not judge are left out.

    one, other (pairs,). kappa is None where chance agreement is certain (one category only) or nothing was judged by both.
    """
    judged = (one != NONE) & (other != NONE)
    a, b = one[judged], other[judged]
    decided = (a != TIE) & (b != TIE)
    return Together(
        both_voted=len(a),
        same=int((a == b).sum()),
        both_decided=int(decided.sum()),
        same_side=int((decided & (a == b)).sum()),
        kappa=_cohen(a, b),
    )


def _cohen(a: ArrayLike, b: ArrayLike) -> float | None:
    a, b = np.asarray(a), np.asarray(b)
    if not len(a):
        return None
    by_a, by_b = (np.bincount(choices, minlength=CATEGORIES) / len(choices) for choices in (a, b))
    chance = float(by_a @ by_b)
    return None if chance == 1 else (float((a == b).mean()) - chance) / (1 - chance)
