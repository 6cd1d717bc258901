"""Findings of single descriptions: for reading, with the span underlined, and as JSON rows."""

import json
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from ad4edu_train.scoring.scorer import Score
from ad4edu_train.scoring.standard import Standard


def as_row(score: Score) -> dict[str, Any]:
    """A score as a JSON row."""
    return {
        "rating": score.rating,
        "components": score.components,
        "findings": [{"rule": one.rule, "start": one.start, "end": one.end, "cost": one.cost} for one in score.findings],
        "critical": score.critical,
        "scorer_id": score.scorer_id,
        "rules_sha256": score.rules_sha256,
    }


def as_text(ad: str, score: Score, standard: Standard) -> str:
    """The score for reading: rating, components, and each finding under the words it speaks of."""
    rules = {rule.id: rule for rule in standard.rules}
    known = "  ".join(f"{name} {'-' if value is None else f'{value:.3f}'}" for name, value in score.components.items())
    lines = [f"rating {'unscored' if score.rating is None else f'{score.rating:.3f}'}   {known}", ""]
    shown = printable(ad)
    for one in score.findings:
        rule = rules[one.rule]
        cost = f"-{one.cost:g} {rule.category}" if one.cost else "charged elsewhere"
        lines += [f"{one.rule} {one.severity} ({cost}): {rule.text}", *underlined(shown, one.start, one.end), ""]
    if not score.findings:
        lines += ["No rule is broken.", ""]
    lines.append(f"{score.scorer_id}, rules sha256 {score.rules_sha256[:12]}. Compliance is not quality.")
    return "\n".join(lines)


def printable(text: str) -> str:
    """The text on one line, with a mark for every character that a terminal would act on; length kept."""
    return "".join("\u2423" if unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" else c for c in text)


def underlined(text: str, start: int, end: int, width: int = 110) -> Iterator[str]:
    """Lines of the text that hold a span, each with the span underlined."""
    for begin in range(0, max(len(text), 1), width):
        stop = begin + width
        if start < stop and end > begin:
            first, last = max(start, begin), min(end, stop)
            yield "  " + text[begin:stop]
            yield "  " + " " * (first - begin) + "^" * max(1, last - first)


def json_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One line a row; characters that UTF-8 cannot hold are written as escapes."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=True)
