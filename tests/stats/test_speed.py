"""The statistics of a whole report within seconds, and a million pairs in linear time."""

import subprocess
import sys
import time

import numpy as np

from ad4edu_train.stats import (
    choices_of,
    cluster_codes,
    cluster_sums,
    clustered_interval,
    mcnemar_exact,
    paired_difference,
    rater_coefficients,
    readings,
    sign_flip,
    single_human_benchmark,
)

PREDICTORS, RESAMPLES = 10, 10_000


def drawn(pairs, seed):
    random = np.random.default_rng(seed)
    moments = [f"m{number}" for number in np.sort(random.integers(0, pairs * 271 // 400, pairs))]
    votes = random.integers(0, 3, (pairs, 4))
    predictions = {f"p{number}": choices_of(random.normal(size=pairs)) for number in range(PREDICTORS)}
    return moments, votes, random.choice([0, 2], pairs), predictions


def by_predictor(moments, winners, predictions):
    """Interval, difference and tests of every predictor against the first."""
    codes = cluster_codes(moments)
    sizes = cluster_sums(np.ones(len(codes)), codes)
    base = predictions["p0"] == winners
    for said in predictions.values():
        readings(winners, said)
        right = said == winners
        only_first, only_second = cluster_sums(right & ~base, codes), cluster_sums(base & ~right, codes)
        clustered_interval(cluster_sums(right, codes), sizes)
        paired_difference(only_first, only_second, sizes)
        sign_flip(only_first - only_second)
        mcnemar_exact(int(only_first.sum()), int(only_second.sum()))
    return codes


def test_ten_predictors_four_hundred_pairs_ten_thousand_resamples_under_ten_seconds():
    moments, votes, winners, predictions = drawn(400, 0)
    begin = time.perf_counter()
    codes = by_predictor(moments, winners, predictions)
    single_human_benchmark(votes, codes, predictions, resamples=RESAMPLES)
    rater_coefficients(votes, codes, resamples=RESAMPLES)
    assert time.perf_counter() - begin < 10


def test_a_million_pairs_take_linear_time():
    seconds = []
    for pairs in (100_000, 1_000_000):
        moments, _, winners, predictions = drawn(pairs, 1)
        begin = time.process_time()
        by_predictor(moments, winners, dict(list(predictions.items())[:3]))
        seconds.append(time.process_time() - begin)
    # Ten times the pairs; a quadratic cost would be a hundred times.
    assert seconds[1] < 25 * seconds[0] + 0.5
    assert seconds[1] < 20


def test_statistics_load_neither_torch_nor_statsmodels():
    code = "import sys, ad4edu_train.stats\nprint({'torch', 'statsmodels', 'pandas', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
