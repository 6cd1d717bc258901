import numpy as np
import pytest
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint

from ad4edu_train.stats import clustered_interval, on_card, wilson

# Every distinct cell of the rating tables on the data set card, as printed there.
CARD_CELLS = [
    (160, 194, "82.5% [76.5, 87.2]"),
    (160, 219, "73.1% [66.8, 78.5]"),
    (106, 117, "90.6% [83.9, 94.7]"),
    (106, 145, "73.1% [65.4, 79.7]"),
    (168, 189, "88.9% [83.6, 92.6]"),
    (168, 191, "88.0% [82.6, 91.8]"),
    (1281, 2443, "52.4% [50.5, 54.4]"),
    (1281, 2501, "51.2% [49.3, 53.2]"),
    (67, 153, "43.8% [36.2, 51.7]"),
    (67, 170, "39.4% [32.4, 46.9]"),
    (120, 145, "82.8% [75.8, 88.0]"),
    (120, 149, "80.5% [73.4, 86.1]"),
    (33, 65, "50.8% [38.9, 62.5]"),
    (33, 165, "20.0% [14.6, 26.8]"),
    (39, 62, "62.9% [50.5, 73.8]"),
    (39, 67, "58.2% [46.3, 69.3]"),
    (8, 17, "47.1% [26.2, 69.0]"),
    (186, 266, "69.9% [64.2, 75.1]"),
    (186, 288, "64.6% [58.9, 69.9]"),
    (12, 29, "41.4% [25.5, 59.3]"),
    (12, 32, "37.5% [22.9, 54.7]"),
    (16, 36, "44.4% [29.5, 60.4]"),
    (1117, 1868, "59.8% [57.6, 62.0]"),
    (1117, 2033, "54.9% [52.8, 57.1]"),
    (73, 180, "40.6% [33.7, 47.9]"),
    (73, 183, "39.9% [33.1, 47.1]"),
    (459, 815, "56.3% [52.9, 59.7]"),
    (459, 850, "54.0% [50.6, 57.3]"),
    (15, 20, "75.0% [53.1, 88.8]"),
    (15, 21, "71.4% [50.0, 86.2]"),
    (10, 13, "76.9% [49.7, 91.8]"),
    (1935, 3306, "58.5% [56.8, 60.2]"),
    (1935, 3540, "54.7% [53.0, 56.3]"),
]


@pytest.mark.parametrize(("k", "n", "printed"), CARD_CELLS)
def test_cells_of_the_card_follow_from_their_counts(k, n, printed):
    assert on_card(k, n) == f"{printed} (k={k}, n={n})"


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 40), (40, 40), (3, 7), (500, 999)])
def test_interval_is_that_of_statsmodels(k, n):
    low, high = proportion_confint(k, n, alpha=0.05, method="wilson")
    interval = wilson(k, n)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-6)
    assert interval.share == k / n


def test_nothing_counted_is_no_share():
    assert wilson(0, 0) is None
    assert on_card(0, 0) == "-"


@pytest.mark.parametrize(("k", "n"), [(2, 1), (-1, 3)])
def test_impossible_counts_are_refused(k, n):
    with pytest.raises(ValueError, match="no share"):
        wilson(k, n)


def ends(interval):
    return (interval.low, interval.high)


def test_few_clusters_take_the_worst_case():
    interval = clustered_interval([1, 0, 1, 2, 1], [1, 1, 1, 2, 2])
    assert ends(interval) == pytest.approx((0.2920354458, 0.9380862906), abs=1e-10)
    assert (interval.note, interval.pairs, interval.clusters, interval.df) == ("small, worst-case ICC", 7, 5, None)
    assert interval.deff == pytest.approx(11 / 7)  # n / kish = sum m^2 / n


def test_twelve_clusters_of_one():
    interval = clustered_interval([1] * 8 + [0] * 4, [1] * 12)
    assert ends(interval) == pytest.approx((0.3501151310, 0.8813030074), abs=1e-10)
    assert interval.deff == pytest.approx(1.0909090909, abs=1e-10)
    assert interval.df == pytest.approx(11)
    assert interval.note == ""


@pytest.mark.parametrize("rate", [0, 1])
def test_without_variance_the_worst_case_stands(rate):
    sizes = np.repeat([1, 2, 3, 4], [20, 6, 2, 2])
    interval = clustered_interval(rate * sizes, sizes)
    expected = (0.8392460773, 1) if rate else (0, 1 - 0.8392460773)
    assert ends(interval) == pytest.approx(expected, abs=1e-10)


def test_design_effect_never_falls_below_one():
    # Every moment agrees on exactly half of its pairs: the cluster variance is 0, and independence is the least we assume.
    interval = clustered_interval([1] * 20, [2] * 20)
    assert interval.deff == 1
    t = student.ppf(0.975, interval.df)
    assert ends(interval) == pytest.approx(ends(wilson(20, 40, t)), abs=1e-12)


def direct(y, m):
    """The same interval from its matrix form, term by term."""
    y, m = np.asarray(y, float), np.asarray(m, float)
    n, p = m.sum(), y.sum() / m.sum()
    v = ((y - m * p) ** 2 / (1 - m / n)).sum() / n**2
    w = 1 / (n**2 * (1 - m / n))
    g = np.sqrt(np.outer(w, w)) * (np.diag(m) - np.outer(m, m) / n)
    df = np.trace(g) ** 2 / (g**2).sum()
    deff = max(1, v / (p * (1 - p) / n))
    return n / deff, deff, df, p


@pytest.mark.parametrize("seed", range(6))
def test_linear_formulas_are_the_matrix_ones(seed):
    random = np.random.default_rng(seed)
    m = random.integers(1, 9, 12 + 8 * seed)
    y = random.binomial(m, random.beta(2, 1, len(m)))
    effective, deff, df, p = direct(y, m)
    interval = clustered_interval(y, m)
    assert interval.deff == pytest.approx(deff)
    assert interval.df == pytest.approx(df)
    z = student.ppf(0.975, df)
    # A score interval holds the rates whose test statistic is below z: its ends solve that equation.
    for end in ends(interval):
        assert abs(p - end) / np.sqrt(end * (1 - end) / effective) == pytest.approx(z)


def test_df_and_variance_are_those_of_equal_clusters_in_closed_form():
    # Clusters of one size are like as many single values: df = C - 1 and V = the sample variance of their means over C.
    y = np.array([0, 1, 2, 3, 3, 3, 2, 2, 1, 3, 0, 2, 3, 1])
    interval = clustered_interval(y, [3] * 14)
    p = y.sum() / 42
    assert interval.df == pytest.approx(13)
    assert interval.deff == pytest.approx(max(1, (y / 3).var(ddof=1) / 14 / (p * (1 - p) / 42)))


@pytest.mark.parametrize("clusters", [1, 2])
def test_two_moments_give_a_share_and_no_interval(clusters):
    interval = clustered_interval([2] * clusters, [3] * clusters)
    assert (interval.share, interval.low, interval.high) == (pytest.approx(2 / 3), None, None)
    assert interval.note == "too few moments"
    assert clustered_interval([1], [1], unit="lectures").note == "too few lectures"


def test_clusters_without_pairs_are_dropped():
    assert clustered_interval([], []) is None
    assert clustered_interval([0, 0], [0, 0]) is None
    sizes = [1, 2] * 8
    assert clustered_interval([*[1] * 16, 0, 0], [*sizes, 0, 0]) == clustered_interval([1] * 16, sizes)


@pytest.mark.parametrize(("agree", "pairs"), [([2], [1]), ([-1], [1]), ([1, 1], [1]), ([float("nan")], [1])])
def test_impossible_clusters_are_refused(agree, pairs):
    with pytest.raises(ValueError, match="cluster"):
        clustered_interval(agree, pairs)


def test_recipe_chatbot_36_moments_are_the_units_not_pairs():
    """Fault recipe-chatbot-36: pairs that share a moment bring no new evidence, so copies of them must not narrow the interval."""
    votes = [1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1]
    once, copied = clustered_interval(votes, [1] * 15), clustered_interval([4 * vote for vote in votes], [4] * 15)
    assert ends(copied) == pytest.approx(ends(once))
    assert copied.deff == pytest.approx(4 * once.deff)
    narrow = wilson(44, 60)
    assert narrow.high - narrow.low < 0.6 * (copied.high - copied.low)
