"""The scorer on the demo corpus: what its constructed and natural pairs must show."""

import pytest

from ad4edu_train.demo.corpus import build_corpus
from ad4edu_train.demo.moments import Settings
from ad4edu_train.demo.ratings import rate


@pytest.fixture(scope="module")
def shares():
    """axis -> (pairs, share where the better side rates higher with ties = fail, the same of the decided pairs)."""
    corpus = build_corpus(Settings(moments=80, seed=0))
    rate(corpus)
    result = {}
    for axis in sorted({row["axis"] for row in corpus.train}):
        rows = [(row["chosen-rating"], row["rejected-rating"]) for row in corpus.train if row["axis"] == axis]
        right, ties = sum(a > b for a, b in rows), sum(a == b for a, b in rows)
        result[axis] = (len(rows), right / len(rows), right / max(1, len(rows) - ties))
    return result


@pytest.mark.parametrize("axis", ["style", "length", "deixis"])
def test_constructed_pairs_of_the_mechanical_axes_are_told_apart(shares, axis):
    pairs, ties_fail, _ = shares[axis]
    assert pairs >= 40
    assert ties_fail >= 0.7


def test_natural_pairs_stay_near_chance(shares):
    """Their direction is the judge's, and compliance is not quality: the card has 52.4 % of decided pairs."""
    pairs, _, decided = shares["natural"]
    assert pairs >= 500
    assert 0.45 <= decided <= 0.6


@pytest.mark.parametrize("axis", ["faithfulness", "non_redundancy"])
def test_the_mechanical_tier_does_not_see_faithfulness_and_redundancy(shares, axis):
    assert shares[axis][1] < 0.3
