"""Agreement on other people's labels: raters among each other, judges against them, judges against themselves. Pure."""

from collections.abc import Mapping
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np

from ad4edu_train.agreement.shares import plain_share, share
from ad4edu_train.data.label_mapping import Vote
from ad4edu_train.data.labels import SWAPPED, LabelSet
from ad4edu_train.stats import (
    choices_of,
    cluster_codes,
    majority,
    null_winners,
    plurality,
    rater_coefficients,
    readings,
    single_human_benchmark,
    together,
)
from ad4edu_train.stats.clusters import Codes
from ad4edu_train.stats.votes import FIRST, NONE, SECOND, TIE, Choices

SCHEMA = "labels/1"
VOTES: dict[Vote | None, int] = {"first": FIRST, "tie": TIE, "second": SECOND, "unparsed": NONE, None: NONE}
UNIT = "clusters"
DEFINITIONS = {
    "side_majority": "the side that most deciding raters chose; a tie is no vote; none on an even split or when nobody decided",
    "plurality": "the most frequent choice, a tie counting as a choice; none where two are most frequent",
    "same_as_plurality": "the judge's choice is the plurality, a tie being right where the plurality is a tie; an unparsed verdict is wrong",
    "kappa": "Cohen's kappa over the three choices, both coded alike; pairs that either did not judge are left out",
    "both_orders": "verdicts about the sides themselves, so that the same verdict in both orders means consistency",
}


def labels_result(
    labels: LabelSet,
    predictions: Mapping[str, Mapping[str, float | None]] | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Everything that can be said of `labels`, ready for JSON. predictions: name -> pair_id -> signed preference."""
    codes = cluster_codes(pair.cluster for pair in labels.pairs)
    choices = {name: _choices(labels, name) for name in (*labels.raters, *labels.judges)}
    swapped = {name: _choices(labels, name + SWAPPED) for name in labels.swapped}
    votes = np.stack([choices[name] for name in labels.raters], axis=1)
    judged = {name: choices[name] for name in labels.judges} | {name + SWAPPED: said for name, said in swapped.items()}
    judged |= {name: _predicted(labels, values) for name, values in (predictions or {}).items()}
    judged |= _controls(labels)
    sides, most = majority(votes), plurality(votes)
    several = len(labels.raters) > 1
    return {
        "schema": SCHEMA,
        "data_sha256": labels.digests,
        "pairs": len(labels.pairs),
        "clusters": int(codes.max()) + 1,
        "definitions": DEFINITIONS,
        "votes": {name: _vote_counts(labels, name) for name in (*labels.raters, *judged) if name in labels.pairs[0].votes},
        "side_majority": _counts(sides) | asdict(null_winners(votes)),
        "plurality": _counts(most),
        "rater_pairs": [
            {"raters": [one, other], **asdict(together(choices[one], choices[other]))}
            for one, other in combinations(labels.raters, 2)
        ],
        "coefficients": {
            name: asdict(one) for name, one in rater_coefficients(votes, codes, resamples=resamples, seed=seed).items()
        }
        if several
        else {},
        # With two raters "the others" would be one person; the benchmark needs a majority of others.
        "single_human": {
            name: asdict(one)
            for name, one in single_human_benchmark(votes, codes, judged, resamples=resamples, seed=seed).items()
        }
        if len(labels.raters) > 2
        else {},
        "judges": {name: _against(sides, most, said, codes) for name, said in judged.items()},
        "both_orders": {name: _consistency(choices[name], said, sides) for name, said in swapped.items()},
        "first_side": {
            name: plain_share(int((said == FIRST).sum()), _sides(said)) for name, said in (choices | judged).items()
        },
        "longer_side": _longer(labels, choices | judged),
    }


def _choices(labels: LabelSet, name: str) -> Choices:
    return np.array([VOTES[pair.votes[name]] for pair in labels.pairs], dtype=np.int64)


def _predicted(labels: LabelSet, values: Mapping[str, float | None]) -> Choices:
    return choices_of(values.get(pair.pair_id) for pair in labels.pairs)


def _lengths(labels: LabelSet) -> np.ndarray | None:
    """Words of the first side less those of the second, (pairs,); None where the mapping names no texts."""
    if any(pair.first is None or pair.second is None for pair in labels.pairs):
        return None
    return np.array([len((pair.first or "").split()) - len((pair.second or "").split()) for pair in labels.pairs])


def _controls(labels: LabelSet) -> dict[str, Choices]:
    length = _lengths(labels)
    return {"first side": np.full(len(labels.pairs), FIRST)} | ({} if length is None else {"longer side": choices_of(length)})


def _against(sides: Choices, most: Choices, said: Choices, codes: Codes) -> dict[str, Any]:
    """One judge against the raters: three readings against the side majority, and the plurality with its ties."""
    counted = readings(sides, said)
    directed = sides != NONE
    decided = directed & ((said == FIRST) | (said == SECOND))
    right = directed & (said == sides)
    known = most != NONE
    alike = together(said, most)
    return asdict(counted) | {
        "decided_only": share(right, decided, codes, UNIT),
        "ties_fail": share(right, directed, codes, UNIT),
        "half_credit": share(right + 0.5 * (directed & (said == TIE)), directed, codes, UNIT),
        "same_as_plurality": share(known & (said == most), known, codes, UNIT),
        "kappa_with_plurality": alike.kappa,
        "judged_with_plurality": alike.both_voted,
    }


def _consistency(given: Choices, swapped: Choices, sides: Choices) -> dict[str, Any]:
    """A judge asked in both orders: equal verdicts, reversals (the other side), and right in both."""
    alike = together(given, swapped)
    directed = sides != NONE
    return asdict(alike) | {
        "equal": plain_share(alike.same, alike.both_voted),
        "reversed": plain_share(alike.both_decided - alike.same_side, alike.both_voted),
        "right_in_both": plain_share(int((directed & (given == sides) & (swapped == sides)).sum()), int(directed.sum())),
    }


def _longer(labels: LabelSet, choices: Mapping[str, Choices]) -> dict[str, Any]:
    """P(the longer side is chosen | a side is chosen and lengths differ), in words; empty without texts."""
    length = _lengths(labels)
    if length is None:
        return {}
    longer = choices_of(length)
    shares = {}
    for name, said in choices.items():
        chosen = ((said == FIRST) | (said == SECOND)) & (longer != TIE)
        shares[name] = plain_share(int((chosen & (said == longer)).sum()), int(chosen.sum()))
    return shares


def _counts(choices: Choices) -> dict[str, int]:
    named = {"first": FIRST, "tie": TIE, "second": SECOND, "none": NONE}
    return {name: int((choices == choice).sum()) for name, choice in named.items()}


def _sides(choices: Choices) -> int:
    return int(((choices == FIRST) | (choices == SECOND)).sum())


def _vote_counts(labels: LabelSet, name: str) -> dict[str, int]:
    given = [pair.votes[name] for pair in labels.pairs]
    return {vote or "missing": given.count(vote) for vote in VOTES}
