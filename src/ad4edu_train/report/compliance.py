"""Summaries of the scorer as Markdown, tables as on the data set card. Computes nothing but the printed form of counts."""

from collections.abc import Sequence
from typing import Any

from ad4edu_train.data.vocabulary import COMPONENTS
from ad4edu_train.stats.intervals import on_card

SYNTHETIC = "**SYNTHETIC DATA: no figure below speaks of real lectures, descriptions or people.**"
COMPLIANCE = (
    "Compliance is not quality: a rating says which rules of the standard a description breaks. A "
    "false or empty description can break "
    "none, so it never picks, ranks or labels single descriptions."
)
STILLS = "Moment types are classified on slide stills, so animation, reveal and transition are told from a single frame."
SPARSE = (
    "The prompts are a sparse subset of each lecture's moments: novelty compares a description with "
    "what the same system said at earlier "
    "prompts, not with everything it would have said."
)
READING = (
    "Agreement: {right} has the higher rating. Directed pairs have a direction; equal ratings after rounding to 6 places are ties; a pair "
    "with an unscored side is in neither share. Intervals are 95 % Wilson on pairs."
)
PREDICTIONS = (
    "Score: rating x min(1, novelty / 0.4), over {lectures} lectures, each sample_index a sequence of its own ({samples} of them). Strict: "
    "a prompt without a description counts 0. A description that says that none is needed is counted as declined and in no mean. "
    "Percentile intervals over whole moments."
)
COLUMNS = ("stratum", "pairs", "moments", "directed", "ties", "unscored", "agree on decided", "agree, ties = fail")


def pairs_markdown(summary: dict[str, Any], *, synthetic: bool, notes: list[str]) -> str:
    """Scored pairs: by axis, by type, the aggregate; then decided shares, what each axis moved, and means of the sides."""
    first = summary["sides"][0]
    right = "the chosen side" if first == "chosen" else "the side that the raters' majority prefers (human_winner)"
    lines = [*_head("ADEduEval on pairs", summary, synthetic, notes), READING.format(right=right)]
    lines += _agreement("By axis (strata first)", summary["by_axis"])
    lines += _agreement("By type (strata first)", summary["by_type"])
    lines += _agreement(f"Aggregate, pooling axes {summary['axes']} and types {summary['types']}", [summary["all"]])
    lines += [
        "",
        "## Decided share by axis",
        "",
        *_table(
            ("axis", "decided of directed pairs"),
            [(row["stratum"], on_card(_decided(row), row["directed"])) for row in summary["by_axis"]],
        ),
    ]
    moved = [(row["axis"], str(row["pairs"]), *(_moved(row[name]) for name in COMPONENTS)) for row in summary["moved"]]
    lines += [
        "",
        "## What each axis moved",
        "",
        "Mean of the better side's component minus the other's, and the pairs in which it differs at all.",
        "",
    ]
    lines += _table(("axis", "pairs", *COMPONENTS), moved)
    lines += [
        "",
        "## Mean rating of the sides",
        "",
        "Percentile interval over whole moments (2,000 resamples). ALL pools every axis and type above.",
        "",
    ]
    lines += _table(
        ("stratum", "side", "descriptions", "mean rating", "critical violations", "critical-free"),
        [_mean_cells(row) for row in summary["means"]],
    )
    return _end(lines)


def predictions_markdown(summary: dict[str, Any], *, synthetic: bool, notes: list[str]) -> str:
    """A system's predictions: by type, then pooled, with coverage, the strict mean and novelty."""
    reading = PREDICTIONS.format(lectures=summary["lectures"], samples=len(summary["samples"]))
    lines = [*_head("ADEduEval on a system's descriptions", summary, synthetic, notes), f"{reading} {SPARSE}"]
    heading = f"Aggregate, pooling types {summary['types']}"
    for title, rows in (("By type (strata first)", summary["by_type"]), (heading, [summary["all"]])):
        columns = (
            "stratum",
            "prompts",
            "moments",
            "coverage",
            "declined",
            "mean score",
            "strict mean",
            "mean rating",
            "mean novelty",
            "critical violations",
            "critical-free",
        )
        lines += ["", f"## {title}", "", *_table(columns, [_prediction_cells(row) for row in rows])]
    return _end(lines)


def comparison_markdown(result: dict[str, Any]) -> str:
    """Shipped ratings beside recomputed ones of another scorer."""
    lines = [
        "# Shipped ratings against this scorer",
        "",
        f"Shipped by: {result['shipped_by'] or 'a scorer that the file does not name'}. Recomputed by: "
        f"{result['recomputed_by']}.",
    ]
    lines += [
        "The two need not agree: they are different scorers. Rank correlation (Spearman) by component, "
        "and pairs that both rate in the same direction.",
        "",
    ]
    rows = [
        (name, str(one["sides"]), "-" if one["rho"] is None else f"{one['rho']:.3f}")
        for name, one in result["correlations"].items()
    ]
    lines += [*_table(("component", "sides", "rank correlation"), rows), ""]
    lines += _table(
        ("axis", "rated pairs", "decided by both", "same direction"),
        [(one["axis"], str(one["rated"]), str(one["decided"]), one["printed"]) for one in result["by_axis"]],
    )
    return "\n".join([*lines, ""])


def _head(title: str, summary: dict[str, Any], synthetic: bool, notes: list[str]) -> list[str]:
    lines = [f"# {title}", "", *([SYNTHETIC, ""] if synthetic else []), COMPLIANCE, ""]
    lines += [f"Scorer {summary['scorer_id']}, tier {summary['tier']}, rules sha256 {summary['rules_sha256']}.", ""]
    return lines + [line for note in notes for line in (f"- Note: {note}", "")]


def _end(lines: list[str]) -> str:
    return "\n".join([*lines, "", f"Footnote: {STILLS}", ""])


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), *("| " + " | ".join(row) + " |" for row in rows)]


def _agreement(title: str, rows: list[dict[str, Any]]) -> list[str]:
    return ["", f"## {title}", "", *_table(COLUMNS, [agreement_cells(row) for row in rows])]


def agreement_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the card's tables, every cell as text."""
    counts = (str(row[name]) for name in ("pairs", "moments", "directed", "ties", "unscored"))
    return (
        row["stratum"],
        *counts,
        on_card(row["agree"], _decided(row)),
        on_card(row["agree"], row["directed"] - row["unscored"]),
    )


def _decided(row: dict[str, Any]) -> int:
    decided: int = row["directed"] - row["ties"] - row["unscored"]
    return decided


def _moved(one: dict[str, Any] | None) -> str:
    return "-" if one is None else f"{one['mean']:+.3f} ({one['moved']} of {one['pairs']})"


def _mean_cells(row: dict[str, Any]) -> tuple[str, ...]:
    free = on_card(row["critical_free"], row["sides"])
    return (row["stratum"], row["side"], str(row["sides"]), _interval(row["mean"]), str(row["critical"]), free)


def _prediction_cells(row: dict[str, Any]) -> tuple[str, ...]:
    means = (_interval(row[name]) for name in ("score", "strict", "rating", "novelty"))
    coverage = on_card(row["described"], row["prompts"])
    return (
        row["stratum"],
        str(row["prompts"]),
        str(row["moments"]),
        coverage,
        str(row["declined"]),
        *means,
        str(row["critical"]),
        on_card(row["critical_free"], row["described"]),
    )


def _interval(one: dict[str, Any] | None) -> str:
    if one is None or one["value"] is None:
        return "-"
    return f"{one['value']:.3f}" if one["low"] is None else f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"
