"""Ratings that a table ships: are they this scorer's, value for value, or another's to compare with?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ad4edu_train.data.files import Record, read_records
from ad4edu_train.data.rows import HumanPair, Side
from ad4edu_train.data.vocabulary import COMPONENTS
from ad4edu_train.scoring.scorer import Score
from ad4edu_train.scoring.summary import ScoredPair
from ad4edu_train.stats.intervals import on_card

SHOWN = 5
COLUMN = "scorer_id"  # key of a Parquet file's own metadata, or a column of JSONL rows


def shipped_scorer_id(path: Path) -> str | None:
    """The scorer that a table names for its ratings; None where it names none (as on the card)."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        metadata = pq.read_schema(path).metadata or {}
        named = metadata.get(COLUMN.encode())
        return None if named is None else named.decode("utf-8", "replace")
    first = next((record.values for record in read_records(path) if isinstance(record, Record)), {})
    named = first.get(COLUMN)
    return named if isinstance(named, str) else None


def mismatches(rows: Sequence[ScoredPair], places: int) -> list[tuple[str, str, str, float | None, float | None]]:
    """(pair_id, side, column, shipped, recomputed) of every value that differs after rounding."""
    found = []
    for row in rows:
        for name, side, score in _sides(row):
            columns = [("rating", side.rating, score.rating)]
            shipped = side.components
            columns += [
                (f"components.{key}", shipped.get(key) if shipped else None, score.components[key]) for key in COMPONENTS
            ]
            found += [
                (row.pair.pair_id, name, column, old, new) for column, old, new in columns if not _equal(old, new, places)
            ]
    return found


def _sides(row: ScoredPair) -> tuple[tuple[str, Side, Score], tuple[str, Side, Score]]:
    names = ("option_a", "option_b") if isinstance(row.pair, HumanPair) else ("chosen", "rejected")
    return (names[0], row.pair.first, row.first), (names[1], row.pair.second, row.second)


def _equal(old: float | None, new: float | None, places: int) -> bool:
    if old is None or new is None:
        return old is new
    return round(old, places) == round(new, places)


def mismatch_lines(found: Sequence[tuple[str, str, str, float | None, float | None]], rows: int) -> list[str]:
    """The count and the first rows, for a message."""
    pairs = len({one[0] for one in found})
    lines = [f"{len(found)} shipped values of {pairs} of {rows} pairs are not what this scorer gives:"]
    lines += [
        f"  pair_id {pair} {side}-{column}: shipped {old}, recomputed {new}" for pair, side, column, old, new in found[:SHOWN]
    ]
    return lines + ([f"  and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])


def comparison(rows: Sequence[ScoredPair], shipped_by: str | None) -> dict[str, Any]:
    """Shipped against recomputed: rank correlation by component, and by axis how often both rate the same side higher."""
    from scipy.stats import spearmanr

    correlations: dict[str, Any] = {}
    for key in ("rating", *COMPONENTS):
        both = [
            (old, new)
            for row in rows
            for _, side, score in _sides(row)
            for old, new in [
                (side.rating, score.rating) if key == "rating" else ((side.components or {}).get(key), score.components[key])
            ]
            if old is not None and new is not None
        ]
        varies = len({old for old, _ in both}) > 1 and len({new for _, new in both}) > 1
        rho = float(spearmanr(*zip(*both, strict=True)).statistic) if varies else None
        correlations[key] = {"sides": len(both), "rho": rho}
    by_axis = []
    for axis in sorted({row.pair.axis for row in rows}):
        own = [
            row
            for row in rows
            if row.pair.axis == axis and row.pair.first.rating is not None and row.pair.second.rating is not None
        ]
        decided = [row for row in own if row.verdict in ("first", "second") and row.pair.first.rating != row.pair.second.rating]
        same = sum(
            (row.verdict == "first") == ((row.pair.first.rating or 0) > (row.pair.second.rating or 0)) for row in decided
        )
        by_axis.append(
            {"axis": axis, "rated": len(own), "decided": len(decided), "same": same, "printed": on_card(same, len(decided))}
        )
    return {
        "shipped_by": shipped_by,
        "recomputed_by": rows[0].first.scorer_id,
        "correlations": correlations,
        "by_axis": by_axis,
    }
