"""The coverage study at reduced size, and that its bars can fail."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from ad4edu_train.stats import wilson

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "interval_coverage.py"


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("interval_coverage", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_every_bar_holds_at_reduced_size(study, capsys):
    assert study.main(["--quick"]) == 0
    assert "meet their bar" in capsys.readouterr().out


def test_an_interval_that_ignores_clusters_fails_the_bar(study):
    """The card's plain Wilson covers 87.8 to 90.5 % at ICC .5: the study must see that."""
    sums = study.agreements(np.random.default_rng(3), study.CARD, 0.7, 0.5, 1500)
    intervals = [wilson(int(row.sum()), 400) for row in sums]
    share = 100 * np.mean([one.low <= 0.7 <= one.high for one in intervals])
    assert share == pytest.approx(89.15, abs=3)
    assert not study.Cell("", "", share, 93.0, 97.0, 1500).met(0)


def test_simulated_pairs_have_the_correlation_asked_for(study):
    """Pairs of one moment agree with each other as the ICC says: var(sum) = m p (1 - p) (1 + (m - 1) ICC)."""
    sizes = np.full(1000, 4)
    sums = study.agreements(np.random.default_rng(4), sizes, 0.7, 0.2, 200)
    assert sums.var() == pytest.approx(4 * 0.7 * 0.3 * (1 + 3 * 0.2), rel=0.02)
    first, second = study.differences(np.random.default_rng(5), sizes, 0.2, 0.08, 0.2, 200)
    assert (first - second).mean() / 4 == pytest.approx(0.08, abs=0.002)
    assert (first + second).mean() / 4 == pytest.approx(0.2, abs=0.002)
