"""Rater coefficients against exact fractions, two other packages, scikit-learn and bootstrap theory."""

from fractions import Fraction

import numpy as np
import pytest

from ad4edu_train.stats import cluster_codes, fleiss_kappa, gwet_ac1, krippendorff_alpha, rater_coefficients

F = Fraction
EXACT = [
    ("0000 0022 2221 0120", F(4, 19), F(37, 112), F(13, 45), F(3, 19)),
    ("0000 2222 0000", 1, 1, 1, 1),
    ("0000 0000 0000", None, None, 1, None),
    ("0022", 0, 0, F(1, 9), F(-1, 3)),
    ("0... 2... 1...", None, None, None, None),
    ("00 00 00 00 00 00 00 00 02 20", F(-1, 18), F(-1, 18), F(71, 91), F(-1, 9)),
    ("02 20", F(-1, 2), F(-1, 2), F(-1, 3), -1),
    ("00 01 22 20", F(5, 19), F(27, 80), F(13, 45), F(3, 19)),
]


def table(text):
    return np.array([[-1 if vote == "." else int(vote) for vote in item] for item in text.split()])


@pytest.mark.parametrize(("text", "nominal", "ordinal", "ac1", "fleiss"), EXACT)
def test_exact_values(text, nominal, ordinal, ac1, fleiss):
    votes = table(text)
    found = (krippendorff_alpha(votes), krippendorff_alpha(votes, "ordinal"), gwet_ac1(votes), fleiss_kappa(votes))
    for value, expected in zip(found, (nominal, ordinal, ac1, fleiss), strict=True):
        assert value == (None if expected is None else pytest.approx(float(expected), abs=1e-12))


def random_votes(seed, missing):
    random = np.random.default_rng(seed)
    truth = random.integers(0, 3, (40, 1))
    votes = np.where(random.random((40, 4)) < 0.6, truth, random.integers(0, 3, (40, 4)))
    return np.where(random.random(votes.shape) < missing, -1, votes)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_alpha_is_that_of_krippendorff(missing, level):
    krippendorff = pytest.importorskip("krippendorff")
    votes = random_votes(3, missing)
    reliability = np.where(votes == -1, np.nan, votes).T
    expected = krippendorff.alpha(reliability_data=reliability, level_of_measurement=level, value_domain=[0, 1, 2])
    assert krippendorff_alpha(votes, level) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_coefficients_are_those_of_irrcac(missing):
    raw = pytest.importorskip("irrCAC.raw")
    import pandas as pd

    votes = random_votes(4, missing)
    frame = pd.DataFrame(np.where(votes == -1, np.nan, votes))
    cac = raw.CAC(frame, categories=[0.0, 1.0, 2.0], digits=12)
    expected = [cac.krippendorff, cac.gwet, cac.fleiss]
    expected = [one()["est"]["coefficient_value"] for one in expected]
    found = [krippendorff_alpha(votes), gwet_ac1(votes), fleiss_kappa(votes)]
    # irrCAC's alpha, like ours, leaves out items that one rater alone judged.
    assert found == pytest.approx(expected, abs=1e-9)


def test_fleiss_is_that_of_statsmodels():
    from statsmodels.stats.inter_rater import aggregate_raters
    from statsmodels.stats.inter_rater import fleiss_kappa as of_statsmodels

    votes = random_votes(5, 0.0)
    counted, _ = aggregate_raters(votes, n_cat=3)
    assert fleiss_kappa(votes) == pytest.approx(of_statsmodels(counted))


def test_a_rater_without_votes_changes_nothing():
    votes = random_votes(6, 0.2)
    more = np.column_stack([votes, np.full(len(votes), -1)])
    for coefficient in (krippendorff_alpha, gwet_ac1, fleiss_kappa):
        assert coefficient(more) == coefficient(votes)


def test_no_items_are_undefined():
    empty = np.empty((0, 4), dtype=int)
    assert (krippendorff_alpha(empty), gwet_ac1(empty), fleiss_kappa(empty)) == (None, None, None)


def test_votes_outside_the_categories_are_refused():
    with pytest.raises(ValueError, match="votes"):
        gwet_ac1([[0, 3]])


def test_recipe_chatbot_36_the_bootstrap_resamples_clusters():
    """Fault recipe-chatbot-36: moments are the independent units, so they are what is drawn again."""
    votes = random_votes(7, 0.1)
    single = rater_coefficients(votes, np.arange(40), resamples=4000)
    copies = rater_coefficients(np.repeat(votes, 5, axis=0), np.repeat(np.arange(40), 5), resamples=4000)
    assert single["ac1"].value == pytest.approx(gwet_ac1(votes))
    # Five copies of each item in one cluster: as wide as one. (Alpha's small-sample term alone differs.)
    for name in ("ac1", "fleiss_kappa"):
        assert copies[name].high - copies[name].low == pytest.approx(single[name].high - single[name].low, rel=0.05)
    apart = rater_coefficients(np.repeat(votes, 5, axis=0), np.arange(200), resamples=4000)
    assert apart["ac1"].high - apart["ac1"].low < 0.6 * (single["ac1"].high - single["ac1"].low)


def test_bootstrap_is_repeatable_and_tells_undefined_resamples():
    votes = table("0000 0000 0000 0000 0222")
    clusters = cluster_codes(["a", "b", "c", "d", "e"])
    one, two = (rater_coefficients(votes, clusters, resamples=2000, seed=4) for _ in range(2))
    assert one == two
    # Resamples without the last item hold one category only: (4/5)^5 of them.
    assert one["alpha_nominal"].undefined == pytest.approx(0.8**5, abs=0.04)
    assert one["ac1"].undefined == 0


def test_two_clusters_have_no_interval():
    estimate = rater_coefficients(table("00 02"), np.arange(2))["ac1"]
    assert estimate.value is not None
    assert (estimate.low, estimate.high) == (None, None)
