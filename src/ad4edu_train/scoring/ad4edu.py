"""The installed package `ad4edu` as the scorer: its `ad4edu.validation.adedueval_eval.rate_pairs`.

Contract, taken from the data set card: `rate_pairs(rows)` takes the rows of a table of pairs, dicts with prompt, lecture, type and the sides
chosen and rejected ([{user}, {assistant}]), and returns as many dicts with chosen-rating, rejected-rating, chosen-components and
rejected-components, the values that the data set ships. Descriptions are put in twos here; a spare one is paired with itself.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from ad4edu_train.data.prompt_fields import LABELS
from ad4edu_train.data.vocabulary import COMPONENTS
from ad4edu_train.errors import DataError, UserError
from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.scorer import Score

MODULE = "ad4edu.validation.adedueval_eval"
SIDES = ("chosen", "rejected")


def rate_with_ad4edu(ads: Sequence[str], moments: Sequence[Moment]) -> list[Score]:
    """Ratings of the package `ad4edu`. It gives no findings. Raises UserError when it is not installed, DataError for odd results."""
    try:
        module = importlib.import_module(MODULE)
    except ImportError as error:
        raise UserError(
            f"--scorer ad4edu: {MODULE} cannot be imported ({error}). Install the package ad4edu, or use --scorer own."
        ) from None
    scores: list[Score | None] = [None] * len(ads)
    rows, places = _rows(ads, moments)
    results = list(module.rate_pairs(rows))
    if len(results) != len(rows):
        raise DataError(f"{MODULE}.rate_pairs gave {len(results)} results for {len(rows)} pairs.")
    version = getattr(importlib.import_module("ad4edu"), "__version__", "unknown version")
    for result, both in zip(results, places, strict=True):
        for side, place in zip(SIDES, both, strict=True):
            scores[place] = _score(result, side, f"ad4edu/{version}/mech")
    return [score for score in scores if score is not None]


def _rows(ads: Sequence[str], moments: Sequence[Moment]) -> tuple[list[dict[str, Any]], list[tuple[int, int]]]:
    """Pairs of descriptions that share a moment, and the places of their sides."""
    rows, places = [], []
    k = 0
    while k < len(ads):
        other = k + 1 if k + 1 < len(ads) and moments[k + 1] is moments[k] else k
        prompt = prompt_of(moments[k])
        row: dict[str, Any] = {"prompt": prompt, "type": moments[k].moment_type}
        for side, place in zip(SIDES, (k, other), strict=True):
            row[side] = [{"role": "user", "content": prompt}, {"role": "assistant", "content": ads[place]}]
        rows.append(row)
        places.append((k, other))
        k = other + 1
    return rows, places


def prompt_of(moment: Moment) -> str:
    """The card's text prompt of a moment."""
    pause = "" if moment.pause_s is None else f"{moment.pause_s:.1f} s"
    values = (moment.moment_type, moment.transcript, moment.ocr, moment.on_screen, pause)
    return "\n".join(f"{label}: {value}" for label, value in zip(LABELS.values(), values, strict=True))


def _score(result: Any, side: str, scorer_id: str) -> Score:
    if not isinstance(result, Mapping) or f"{side}-rating" not in result:
        raise DataError(f"{MODULE}.rate_pairs gave a result without {side}-rating.")
    shipped = result.get(f"{side}-components") or {}
    components = {name: _value(shipped.get(name), f"{side}-components.{name}") for name in COMPONENTS}
    return Score(
        rating=_value(result[f"{side}-rating"], f"{side}-rating"),
        components=components,
        findings=(),
        scorer_id=scorer_id,
        rules_sha256="unknown",
    )


def _value(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise DataError(f"{MODULE}.rate_pairs gave {value!r} as {name}, which is no score in [0, 1].")
    return round(float(value), 6)
