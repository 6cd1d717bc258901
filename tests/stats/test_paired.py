"""Paired comparisons against exact values, enumeration, scipy, statsmodels and closed forms."""

from itertools import product

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import norm, t, ttest_1samp, wilcoxon
from statsmodels.stats.contingency_tables import mcnemar

from ad4edu_train.stats import detectable_difference, holm, mcnemar_exact, paired_difference, sign_flip

CARD = np.repeat([1, 2, 3, 4], [185, 52, 25, 9])


@pytest.mark.parametrize(
    ("differences", "exact", "mid"),
    [
        ([1] * 5, 0.0625, 0.03125),
        ([2, 1, -1], 0.75, 0.5),
        ([1] * 8 + [-1] * 2, 0.109375, 0.0654296875),
        ([3, -1, -1], 1, 0.875),
        ([4], 1, 0.5),
        ([0, 0], 1, 1),
        ([], 1, 1),
    ],
)
def test_sign_flip_values(differences, exact, mid):
    result = sign_flip(differences)
    assert (result.p_exact, result.p_mid) == pytest.approx((exact, mid), abs=1e-12)
    assert (result.note == "no discordance") == (not any(differences))


@pytest.mark.parametrize("seed", range(8))
def test_sign_flip_is_the_enumeration_of_all_signs(seed):
    d = np.random.default_rng(seed).integers(-4, 5, 11)
    sums = np.abs([np.dot(signs, np.abs(d)) for signs in product((-1, 1), repeat=len(d))])
    observed = abs(d.sum())
    result = sign_flip(d)
    assert result.p_exact == pytest.approx(np.mean(sums >= observed), abs=1e-12)
    assert result.p_mid == pytest.approx(np.mean(sums > observed) + np.mean(sums == observed) / 2, abs=1e-12)


def test_sign_flip_on_ranks_is_wilcoxons_test():
    d = np.array([1, -2, 3, 4, -5, 6, 7, 8, -9, 10, 11, 12])
    assert sign_flip(d).p_exact == pytest.approx(wilcoxon(d, mode="exact").pvalue)


def test_sign_flip_smallest_p_tells_what_cannot_be_significant():
    assert sign_flip([1, 1, -1, 0, 2]).p_smallest == 0.125
    assert sign_flip([3, 1, 1, 2]).p_exact == sign_flip([3, 1, 1, 2]).p_smallest


def test_sign_flip_holds_for_many_clusters_and_wide_ones():
    random = np.random.default_rng(1)
    d = random.choice([-2, -1, 0, 1, 2, 3], 300_000)
    d[: abs(d.sum())] -= np.sign(d.sum())  # near no difference
    z = abs(d.sum()) / np.sqrt((d.astype(float) ** 2).sum())
    assert sign_flip(d).p_mid == pytest.approx(2 * norm.sf(z), abs=1e-3)
    wide = random.integers(-20_000, 20_000, 40)
    z = abs(wide.sum()) / np.sqrt((wide.astype(float) ** 2).sum())
    assert sign_flip(wide).p_mid == pytest.approx(2 * norm.sf(z), abs=0.03)


def test_sign_flip_refuses_halves():
    with pytest.raises(ValueError, match="whole numbers"):
        sign_flip([0.5])


@pytest.mark.parametrize(("b", "c"), [(0, 0), (5, 0), (8, 2), (3, 3), (40, 61)])
def test_mcnemar_is_that_of_statsmodels(b, c):
    expected = mcnemar([[10, b], [c, 10]], exact=True).pvalue if b + c else 1.0
    assert mcnemar_exact(b, c) == pytest.approx(min(1.0, expected))


def test_holm_by_hand():
    # Holm 1979: sorted .005 .01 .03 .04 times 4 3 2 1, made monotone.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_detectable_difference_of_the_card_is_6_8_points():
    assert 100 * detectable_difference(CARD) == pytest.approx(6.8, abs=0.05)
    assert detectable_difference([1] * 100, discordance=0.25) == pytest.approx(2.80 * 0.05)
    assert detectable_difference([]) is None


def test_paired_difference_of_single_pairs_is_the_t_interval():
    b, c = [1] * 60 + [0] * 240, [0] * 60 + [1] * 30 + [0] * 210
    d = np.array(b) - np.array(c)
    result = paired_difference(b, c, [1] * 300)
    low, high = ttest_1samp(d, 0).confidence_interval(0.95)
    assert (result.low, result.high, result.difference) == pytest.approx((low, high, 0.1))
    assert result.df == pytest.approx(299)


def test_paired_difference_is_cluster_robust_least_squares():
    """CR2 with equal cluster sizes is statsmodels' CR0 times C / (C - 1), whose small-sample correction for a mean is the same."""
    random = np.random.default_rng(2)
    b = random.binomial(2, 0.3, 150)
    c = random.binomial(2 - b, 0.2)
    d = np.concatenate([np.concatenate([np.ones(x), -np.ones(y), np.zeros(2 - x - y)]) for x, y in zip(b, c, strict=True)])
    groups = np.repeat(np.arange(150), 2)
    fit = sm.OLS(d, np.ones(300)).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
    result = paired_difference(b, c, [2] * 150)
    half = (result.high - result.low) / 2
    assert half == pytest.approx(t.ppf(0.975, 149) * fit.bse[0] * np.sqrt(150 / 149))


def test_paired_difference_of_few_pairs_is_bonett_and_prices():
    # 20 + 8 discordant of 60: (p12, p21) = (21, 9) / 62, adjusted Wald with the t quantile of 59 degrees of freedom.
    b, c = [1] * 20 + [0] * 40, [0] * 20 + [1] * 8 + [0] * 32
    result = paired_difference(b, c, [1] * 60)
    n = 60 / result.deff
    p12, p21 = (20 / 60 * n + 1) / (n + 2), (8 / 60 * n + 1) / (n + 2)
    half = t.ppf(0.975, 59) * np.sqrt((p12 + p21 - (p12 - p21) ** 2) / (n + 2))
    assert (result.low, result.high) == pytest.approx((p12 - p21 - half, p12 - p21 + half))
    assert result.deff == pytest.approx(60 / 59)


def test_paired_difference_edges():
    assert paired_difference([], [], []) is None
    two = paired_difference([1, 0], [0, 0], [1, 1], unit="lectures")
    assert (two.low, two.note, two.difference) == (None, "too few lectures", 0.5)
    same = paired_difference([0] * 30, [0] * 30, [2] * 30)
    assert same.difference == 0
    assert same.low < 0 < same.high
    all_same_large = paired_difference([0] * 300, [0] * 300, [1] * 300)
    assert all_same_large.low < 0 < all_same_large.high
    one_sided = paired_difference([1] * 5, [0] * 5, [1] * 5)
    assert (one_sided.note, one_sided.high) == ("small, worst-case ICC", pytest.approx(1, abs=0.1))
    with pytest.raises(ValueError, match="discordant"):
        paired_difference([1], [1], [1])
