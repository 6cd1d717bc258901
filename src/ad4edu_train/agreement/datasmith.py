"""What the judgments of DataSmith-Preference-HumanEval say, and how far predictors agree with them. Pure: rows in, result out.

The unit is the comparison. Evaluators judge one language each, two or so a language, so no interval over evaluators exists within a
language; over all languages one stands beside the comparison-clustered one. The second card's own win rate has ties in its
denominator; it is shown under that name.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

from ad4edu_train.agreement.shares import share
from ad4edu_train.data.datasmith import ASPECTS, MINUTE_MS, PREFERENCES, Comparison, Judgment
from ad4edu_train.data.messages import text_of
from ad4edu_train.stats import choices_of, cluster_codes, majority, readings, together
from ad4edu_train.stats.votes import FIRST, NONE, SECOND, TIE, Choices

SCHEMA = "datasmith/1"
UNIT = "comparisons"
OVERALL = "overall"
# The first side is DataSmith's.
CHOICES = {
    "strong_smith": FIRST,
    "smith": FIRST,
    "teacher": SECOND,
    "strong_teacher": SECOND,
    "tie_both_good": TIE,
    "tie_both_bad": TIE,
}
NOTES = {
    "decided_only": "wins over wins and losses; ties are left out",
    "ties_in_denominator": "the card's one-liner: wins over all judgments, so a tie counts against DataSmith",
    "half_credit": "a tie is half a win",
    "first_side": "not available: choices were resolved to systems, and the sides as shown are not shipped",
    "evaluators": "no interval over evaluators within a language: they are nested in languages, about two each",
    "second_judgments": "agreement of evaluators over all languages together; too few for a coefficient by language",
    "lengths": "in characters, because not every language writes spaces between words",
    "predictors": "against the side that most judgments of a comparison prefer overall; without one it stands in no denominator",
}

Row = tuple[Comparison, Judgment]
Preferences = Mapping[str, float | None]


def datasmith_result(
    comparisons: Sequence[Comparison], predictions: Mapping[str, Preferences] | None = None, *, synthetic: bool = False
) -> dict[str, Any]:
    """Everything that can be said of the comparisons, ready for JSON; strata first, the aggregate last.

    predictions: name -> comparison id -> signed preference, positive for DataSmith's conversation, None an abstention.
    """
    rows = [(comparison, judgment) for comparison in comparisons for judgment in comparison.judgments]
    languages_of: dict[str, set[str]] = {}
    for comparison, judgment in rows:
        languages_of.setdefault(judgment.annotator_id, set()).add(comparison.language)
    return {
        "schema": SCHEMA,
        "synthetic_data": synthetic,
        "notes": NOTES,
        "comparisons": len(comparisons),
        "judgments": len(rows),
        "evaluators": len(languages_of),
        "evaluators_in_several_languages": sum(len(languages) > 1 for languages in languages_of.values()),
        "first_side": NOTES["first_side"],
        "win_rates": list(_win_rates(rows)),
        "aspects_against_overall": {aspect: _against_overall(rows, aspect) for aspect in ASPECTS if aspect != OVERALL},
        "minutes": {name: _minutes(members) for name, members in _strata(rows)},
        "second_judgments": _second_judgments(comparisons),
        "predictors": list(_predictors(comparisons, predictions or {})),
        "remarks": [_remark(*row) for row in rows if row[1].comment or row[1].instance_feedback],
    }


def _strata(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """(name, rows) by language, by source, and all together last."""
    for block, key in (("language", _language), ("source", _source)):
        for value in sorted({key(row) for row, _ in rows}):
            yield f"{block}: {value}", [row for row in rows if key(row[0]) == value]
    yield "all", rows


def _win_rates(rows: list[Row]) -> Iterator[dict[str, Any]]:
    for name, members in _strata(rows):
        if name != "all":
            yield {"stratum": name, "aspect": OVERALL, **_win_rate(members, OVERALL)}
    for aspect in ASPECTS:
        found = _win_rate(rows, aspect)
        choices = _choices(rows, aspect)
        # Other judges, and other languages, are what these two speak of; 11 languages are below the bound for a real design effect.
        over = {
            unit: cluster_codes(key(*row) for row in rows)
            for unit, key in (("evaluators", _evaluator), ("languages", _language_of))
        }
        wider = {f"decided_by_{unit}": share(choices == FIRST, _decided(choices), codes, unit) for unit, codes in over.items()}
        yield {"stratum": "all", "aspect": aspect, **found, **wider}


def _win_rate(rows: list[Row], aspect: str) -> dict[str, Any]:
    """Counts of every preference value, and DataSmith's win rate: three readings of ties, strong and plain preferences apart."""
    values = [judgment.preferences[aspect] for _, judgment in rows]
    choices, codes = _choices(rows, aspect), _by_comparison(rows)
    won, everyone = choices == FIRST, np.ones(len(rows), dtype=bool)
    strong = np.array([value.startswith("strong_") for value in values], dtype=bool)
    counts = Counter(values)
    return {
        "comparisons": len({row.id for row, _ in rows}),
        "judgments": len(rows),
        "evaluators": len({judgment.annotator_id for _, judgment in rows}),
        "values": {value: counts[value] for value in PREFERENCES},
        "decided_only": share(won, _decided(choices), codes, UNIT),
        "ties_in_denominator": share(won, everyone, codes, UNIT),
        "half_credit": share(won + 0.5 * (choices == TIE), everyone, codes, UNIT),
        "strong_only": share(won & strong, _decided(choices) & strong, codes, UNIT),
        "plain_only": share(won & ~strong, _decided(choices) & ~strong, codes, UNIT),
    }


def _against_overall(rows: list[Row], aspect: str) -> dict[str, Any]:
    """How often an aspect and the overall preference of one judgment name the same side."""
    one, overall, codes = _choices(rows, aspect), _choices(rows, OVERALL), _by_comparison(rows)
    decided = _decided(one) & _decided(overall)
    names = {"smith": FIRST, "tie": TIE, "teacher": SECOND}
    return asdict(together(one, overall)) | {
        "same_choice": share(one == overall, np.ones(len(rows), dtype=bool), codes, UNIT),
        "same_side_where_both_decided": share(decided & (one == overall), decided, codes, UNIT),
        "aspect_by_overall": {
            row: {column: int(((one == a) & (overall == b)).sum()) for column, b in names.items()} for row, a in names.items()
        },
    }


def _second_judgments(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Agreement between the evaluators of one comparison, every pair of them, where there are several."""
    several = [comparison for comparison in comparisons if len(comparison.judgments) > 1]
    pairs = [pair for comparison in several for pair in combinations(comparison.judgments, 2)]
    one, other = (np.array([CHOICES[pair[side].preferences[OVERALL]] for pair in pairs], dtype=np.int64) for side in (0, 1))
    alike = together(one, other)
    return {"comparisons": len(several), "pairs_of_judgments": len(pairs), **asdict(alike)}


def _predictors(comparisons: Sequence[Comparison], predictions: Mapping[str, Preferences]) -> Iterator[dict[str, Any]]:
    """Agreement with the overall side by language and over all; the controls need nothing but the conversations' lengths."""
    winners = np.array([_winner(comparison) for comparison in comparisons], dtype=np.int64)
    codes = np.arange(len(comparisons))
    said = {name: choices_of(values.get(row.id) for row in comparisons) for name, values in predictions.items()}
    said["longer conversation"] = choices_of(_length(row.smith) - _length(row.teacher) for row in comparisons)
    said["always DataSmith"] = np.full(len(comparisons), FIRST)
    languages = sorted({row.language for row in comparisons})
    for language in (*languages, None):
        member = np.array([language in (None, row.language) for row in comparisons], dtype=bool)
        for name, choices in said.items():
            directed = member & (winners != NONE)
            right = directed & (choices == winners)
            yield {
                "stratum": f"language: {language}" if language else "all",
                "predictor": name,
                **asdict(readings(winners[member], choices[member])),
                "decided_only": share(right, directed & _decided(choices), codes, UNIT),
                "ties_fail": share(right, directed, codes, UNIT),
                "half_credit": share(right + 0.5 * (directed & (choices == TIE)), directed, codes, UNIT),
            }


def _winner(comparison: Comparison) -> int:
    votes = np.array([[CHOICES[judgment.preferences[OVERALL]] for judgment in comparison.judgments]])
    return int(majority(votes)[0])


def _remark(comparison: Comparison, judgment: Judgment) -> dict[str, str]:
    return {
        "id": comparison.id,
        "language": comparison.language,
        "annotator_id": judgment.annotator_id,
        "preference_overall": judgment.preferences[OVERALL],
        "comment": judgment.comment,
        "instance_feedback": judgment.instance_feedback,
    }


def _choices(rows: list[Row], aspect: str) -> Choices:
    return np.array([CHOICES[judgment.preferences[aspect]] for _, judgment in rows], dtype=np.int64)


def _decided(choices: Choices) -> np.ndarray:
    return (choices == FIRST) | (choices == SECOND)


def _by_comparison(rows: list[Row]) -> Choices:
    return cluster_codes(row.id for row, _ in rows)


def _minutes(rows: list[Row]) -> float | None:
    return median(judgment.duration_ms for _, judgment in rows) / MINUTE_MS if rows else None


def _length(messages: list[dict[str, Any]]) -> int:
    return sum(len(text_of(message["content"])) for message in messages)


def _language(row: Comparison) -> str:
    return row.language


def _source(row: Comparison) -> str:
    return row.source


def _evaluator(_: Comparison, judgment: Judgment) -> str:
    return judgment.annotator_id


def _language_of(row: Comparison, _: Judgment) -> str:
    return row.language
