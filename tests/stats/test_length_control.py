"""Agreement at no length difference: against simulated truth, and where it cannot be had."""

import numpy as np
import pytest

from ad4edu_train.stats import at_zero


def test_a_predictor_that_follows_length_alone_is_worth_nothing_at_equal_length():
    """Raters prefer by length (and chance); the longer side agrees with them often, but not where lengths are equal."""
    random = np.random.default_rng(0)
    length = random.normal(0, 20, 4000)
    longer_wins = random.random(4000) < 1 / (1 + np.exp(-np.abs(length) / 10))
    assert longer_wins.mean() > 0.7
    found = at_zero(longer_wins, np.abs(length)[:, None], np.arange(4000) // 2)
    assert found.low < 0.5 < found.high
    assert found.high - found.low < 0.1
    assert found.slopes[0] > 1


def test_agreement_that_has_nothing_to_do_with_length_stays():
    random = np.random.default_rng(1)
    agree = random.random(4000) < 0.8
    found = at_zero(agree, random.normal(0, 20, (4000, 1)), np.arange(4000) // 2)
    assert found.share == pytest.approx(0.8, abs=0.02)
    assert found.low < 0.8 < found.high


def test_without_covariate_the_share_itself_comes_out():
    outcome = np.array([1, 1, 0] * 20)
    found = at_zero(outcome, np.zeros((60, 1)), np.arange(60))
    assert found.share == pytest.approx(2 / 3)
    assert found.slopes == []


def test_clusters_widen_the_interval():
    random = np.random.default_rng(2)
    outcome, length = random.random(60) < 0.6, random.normal(size=60)
    single = at_zero(outcome, length[:, None], np.arange(60))
    copied = at_zero(np.repeat(outcome, 4), np.repeat(length, 4)[:, None], np.repeat(np.arange(60), 4))
    assert copied.high - copied.low == pytest.approx(single.high - single.low, rel=0.02)


@pytest.mark.parametrize(
    ("outcome", "covariate", "note"),
    [
        ([1] * 20, np.arange(20), "every outcome is the same"),
        ([1, 0] * 10, np.ones(20), "the same in every pair"),
        ([1] * 10 + [0] * 10, [*range(1, 11), *range(-10, 0)], "separated"),
        ([1, 0, 1], [1, 2, 3], "fewer than 12 clusters"),
    ],
)
def test_what_cannot_be_estimated_is_said(outcome, covariate, note):
    found = at_zero(outcome, np.array(covariate)[:, None], np.arange(len(outcome)))
    assert found.share is None
    assert note in found.note
