"""Summaries of scored pairs and of a system's predictions, as plain values: strata first, what is pooled last."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ad4edu_train.data.rows import HumanPair, Pair
from ad4edu_train.data.vocabulary import COMPONENTS
from ad4edu_train.scoring.scorer import Score, SequenceScore
from ad4edu_train.stats.clusters import Estimate, cluster_bootstrap, cluster_codes, cluster_sums

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """A pair with the scores of its sides."""

    pair: Pair
    first: Score
    second: Score

    @property
    def directed(self) -> bool:
        """Is it known which side is better: the chosen one, or the one that the raters' majority prefers?"""
        if isinstance(self.pair, HumanPair):
            return self.pair.human_winner is not None
        return self.pair.label_source is not None

    @property
    def verdict(self) -> str:
        """first, second, tie or unscored. Ratings are rounded to 6 places, so equal ones are a tie."""
        a, b = self.first.rating, self.second.rating
        if a is None or b is None:
            return "unscored"
        return "tie" if a == b else ("first" if a > b else "second")

    @property
    def agrees(self) -> bool:
        wanted = "second" if isinstance(self.pair, HumanPair) and self.pair.human_winner == "option_b" else "first"
        return self.verdict == wanted


def stratum_row(name: str, rows: Sequence[ScoredPair]) -> dict[str, Any]:
    """Counts of one stratum: what the card's tables print, and nothing that cannot be recomputed from them."""
    directed = [row for row in rows if row.directed]
    verdicts = [row.verdict for row in directed]
    return {
        "stratum": name,
        "pairs": len(rows),
        "moments": len({row.pair.moment_id for row in rows}),
        "directed": len(directed),
        "ties": verdicts.count("tie"),
        "unscored": verdicts.count("unscored"),
        "agree": sum(row.agrees for row in directed),
    }


def summarize_pairs(rows: Sequence[ScoredPair], tier: str) -> dict[str, Any]:
    """Everything a report on scored pairs prints."""
    sides = ("option_a", "option_b") if isinstance(rows[0].pair, HumanPair) else ("chosen", "rejected")
    axes, types = (sorted({getattr(row.pair, name) for row in rows}) for name in ("axis", "type"))
    return {
        "kind": "pairs",
        "tier": tier,
        "scorer_id": rows[0].first.scorer_id,
        "rules_sha256": rows[0].first.rules_sha256,
        "sides": list(sides),
        "by_axis": _strata(rows, lambda row: row.pair.axis),
        "by_type": _strata(rows, lambda row: row.pair.type),
        "all": stratum_row("ALL", rows),
        "axes": axes,
        "types": types,
        "moved": [_moved(axis, [row for row in rows if row.pair.axis == axis and row.directed]) for axis in axes],
        "means": [
            {"stratum": name, "side": side} | _side_summary(chosen, [getattr(row, which) for row in chosen])
            for name, chosen in [*((axis, [row for row in rows if row.pair.axis == axis]) for axis in axes), ("ALL", rows)]
            for side, which in zip(sides, ("first", "second"), strict=True)
        ],
    }


def _strata(rows: Sequence[ScoredPair], key: Callable[[ScoredPair], str]) -> list[dict[str, Any]]:
    return [stratum_row(name, [row for row in rows if key(row) == name]) for name in sorted({key(row) for row in rows})]


def _moved(axis: str, rows: Sequence[ScoredPair]) -> dict[str, Any]:
    """Mean of (better side - other side) by component over directed pairs, and how many pairs it moved at all."""
    moved: dict[str, Any] = {"axis": axis, "pairs": len(rows)}
    for name in COMPONENTS:
        gaps = []
        for row in rows:
            a, b = row.first.components[name], row.second.components[name]
            if a is not None and b is not None:
                better_second = isinstance(row.pair, HumanPair) and row.pair.human_winner == "option_b"
                gaps.append(b - a if better_second else a - b)
        moved[name] = (
            None if not gaps else {"mean": float(np.mean(gaps)), "moved": sum(gap != 0 for gap in gaps), "pairs": len(gaps)}
        )
    return moved


def _side_summary(rows: Sequence[ScoredPair], scores: Sequence[Score]) -> dict[str, Any]:
    scored = [(row.pair.moment_id, score.rating) for row, score in zip(rows, scores, strict=True) if score.rating is not None]
    return {
        "sides": len(scores),
        "mean": interval(mean_by_cluster([moment for moment, _ in scored], [rating for _, rating in scored])),
        **critical_counts(scores),
    }


def critical_counts(scores: Sequence[Score]) -> dict[str, int]:
    """Critical violations, and descriptions that have none."""
    return {"critical": sum(score.critical for score in scores), "critical_free": sum(score.critical == 0 for score in scores)}


def mean_by_cluster(clusters: Sequence[Hashable], values: Sequence[float]) -> Estimate | None:
    """Mean with its percentile interval over whole clusters; None without values."""
    if not values:
        return None
    sums = cluster_sums(np.column_stack([values, np.ones(len(values))]), cluster_codes(clusters))
    return cluster_bootstrap(sums, lambda totals: totals[..., :1] / totals[..., 1:], resamples=RESAMPLES)[0]


def interval(estimate: Estimate | None) -> dict[str, Any] | None:
    return (
        None
        if estimate is None
        else {"value": estimate.value, "low": estimate.low, "high": estimate.high, "clusters": estimate.clusters}
    )


@dataclass(frozen=True, slots=True)
class ScoredPrediction:
    """A description of a system with its place; result None where the system said nothing about the prompt."""

    lecture: str
    moment_id: str
    type: str
    sample_index: int
    result: SequenceScore | None


def summarize_predictions(rows: Sequence[ScoredPrediction], tier: str, scorer_id: str, rules_sha256: str) -> dict[str, Any]:
    """Everything a report on a system's predictions prints."""
    types = sorted({row.type for row in rows})
    return {
        "kind": "predictions",
        "tier": tier,
        "scorer_id": scorer_id,
        "rules_sha256": rules_sha256,
        "types": types,
        "samples": sorted({row.sample_index for row in rows}),
        "lectures": len({row.lecture for row in rows}),
        "by_type": [_prediction_row(name, [row for row in rows if row.type == name]) for name in types],
        "all": _prediction_row("ALL", rows),
    }


def _prediction_row(name: str, rows: Sequence[ScoredPrediction]) -> dict[str, Any]:
    given = [(row, row.result) for row in rows if row.result is not None]
    scored = [(row, one, one.system_score) for row, one in given if one.system_score is not None]
    moments = [row.moment_id for row, _, _ in scored]
    # The strict mean: a prompt without a description counts 0; one that needs none by the system's word counts for nothing.
    strict = [(row.moment_id, total) for row, _, total in scored] + [(row.moment_id, 0.0) for row in rows if row.result is None]
    return {
        "stratum": name,
        "prompts": len(rows),
        "moments": len({row.moment_id for row in rows}),
        "described": len(given),
        "declined": sum(one.declined for _, one in given),
        "score": interval(mean_by_cluster(moments, [total for _, _, total in scored])),
        "strict": interval(mean_by_cluster([moment for moment, _ in strict], [total for _, total in strict])),
        "rating": interval(mean_by_cluster(moments, [one.score.rating or 0.0 for _, one, _ in scored])),
        "novelty": interval(mean_by_cluster(moments, [one.novelty for _, one, _ in scored])),
        **critical_counts([one.score for _, one in given]),
    }
