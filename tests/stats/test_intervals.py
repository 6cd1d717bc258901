import pytest
from statsmodels.stats.proportion import proportion_confint

from ad4edu_train.stats.intervals import on_card, wilson

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
