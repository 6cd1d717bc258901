"""The single-human benchmark: how well one rater agrees with the others, and predictors against the very same references.

Each rater meets the majority of the other raters, never one that holds their own vote; pairs on which the others split evenly have
no reference. It is agreement, not accuracy, and whoever knows all raters beats it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ad4edu_train.stats.clusters import Codes, Estimate, Floats, cluster_bootstrap, cluster_sums
from ad4edu_train.stats.votes import FIRST, NONE, SECOND, Choices, majority

HUMAN = "one human rater"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstOthers:
    """Agreement with the majority of all raters but one, averaged over the raters left out.

    counts: one (agree, decided, directed) a rater; directed pairs have a reference and that rater's vote, decided ones also a
    side chosen. *_above_human: share minus the one human rater's, on the same pairs; None for the human themselves.
    """

    counts: list[tuple[int, int, int]]
    decided_only: Estimate
    ties_fail: Estimate
    decided_only_above_human: Estimate | None = None
    ties_fail_above_human: Estimate | None = None


def single_human_benchmark(
    votes: Choices, clusters: Codes, predictions: Mapping[str, Choices], *, resamples: int = 10_000, seed: int = 0
) -> dict[str, AgainstOthers]:
    """The human's row under `HUMAN`, then one a predictor: votes (pairs, raters), clusters (pairs,), predictions (pairs,) each.

    Intervals are cluster bootstrap; they speak of other moments, not of other raters. A rater without votes is left out of the
    average.
    """
    counted = [_counts(votes, None), *(_counts(votes, said) for said in predictions.values())]
    shape = (len(counted), votes.shape[1], 3)
    sums = cluster_sums(np.concatenate([one.reshape(len(votes), shape[1] * 3) for one in counted], axis=1), clusters)

    def statistics(totals: Floats) -> Floats:
        shares = _mean_shares(totals.reshape(*totals.shape[:-1], *shape))
        return np.concatenate([shares, shares[..., 1:, :] - shares[..., :1, :]], axis=-2).reshape(*totals.shape[:-1], -1)

    estimates = cluster_bootstrap(sums, statistics, resamples=resamples, seed=seed)
    pairs = list(zip(estimates[::2], estimates[1::2], strict=True))
    own, above = pairs[: len(counted)], [(None, None), *pairs[len(counted) :]]
    totals = sums.sum(axis=0).reshape(shape).astype(int).tolist()
    return {
        name: AgainstOthers(
            counts=[tuple(rater) for rater in totals[row]],
            decided_only=own[row][0],
            ties_fail=own[row][1],
            decided_only_above_human=above[row][0],
            ties_fail_above_human=above[row][1],
        )
        for row, name in enumerate((HUMAN, *predictions))
    }


def _counts(votes: Choices, predictions: Choices | None) -> Floats:
    """(pairs, raters, 3): agree, decided, directed of the rater's own votes, or of predictions on the rater's pairs."""
    columns = []
    for rater in range(votes.shape[1]):
        reference = majority(np.delete(votes, rater, axis=1))
        directed = (reference != NONE) & (votes[:, rater] != NONE)
        said = votes[:, rater] if predictions is None else predictions
        decided = directed & ((said == FIRST) | (said == SECOND))
        columns.append(np.stack([decided & (said == reference), decided, directed], axis=1))
    return np.stack(columns, axis=1).astype(np.float64)


def _mean_shares(totals: Floats) -> Floats:
    """(..., raters, 3) -> (..., 2): decided-only and ties = fail, averaged over the raters that have a denominator."""
    agree, under = totals[..., :1], totals[..., 1:]
    shares = np.divide(agree, under, out=np.zeros(under.shape), where=under > 0)
    raters = (under > 0).sum(axis=-2)
    return np.divide(shares.sum(axis=-2), raters, out=np.full(raters.shape, np.nan), where=raters > 0)
