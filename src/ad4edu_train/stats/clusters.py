"""Pairs in clusters (moments, lectures, comparisons): sums, CR2 variance, Bell-McCaffrey degrees of freedom, bootstrap."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

FEWEST = 3  # fewer clusters give no interval
FEW = 12  # fewer clusters say too little of the intra-cluster correlation, so the worst case is taken
Z95 = 1.959963984540054  # two-sided 95 % point of the standard normal distribution
_DRAWS_AT_ONCE = 2**22  # resamples x distinct clusters held in memory, 32 MB


def cluster_codes(ids: Iterable[Hashable]) -> Codes:
    """Cluster ids as 0, 1, 2, ... in the order of their first appearance; linear in the number of pairs. (pairs,)"""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in ids], dtype=np.int64)


def cluster_sums(values: ArrayLike, codes: Codes) -> Floats:
    """Sums within clusters: values (pairs,) or (pairs, columns), codes (pairs,) -> (clusters,) or (clusters, columns)."""
    array = np.asarray(values, dtype=np.float64)
    clusters = int(codes.max()) + 1 if len(codes) else 0
    if array.ndim == 1:
        return np.bincount(codes, array, clusters).astype(np.float64)
    sums = np.zeros((clusters, array.shape[1]))
    for number, column in enumerate(array.T):
        sums[:, number] = np.bincount(codes, column, clusters)
    return sums


def kish(sizes: Floats) -> float:
    """Effective number of pairs when the pairs of a cluster are copies of one another: n^2 / sum m^2 (Kish 1965, s. 8.2)."""
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def cr2_variance(sums: Floats, sizes: Floats) -> float:
    """Variance of the mean sum(y) / n with clusters as units, bias-reduced (Bell and McCaffrey 2002, eq. 6; Pustejovsky and Tipton 2018).

    sums y and sizes m, both (clusters,). For a mean, CR2 divides each squared cluster residual by its leverage's complement 1 - m/n.
    """
    n = sizes.sum()
    residuals = sums - sizes * (sums.sum() / n)
    return float((residuals**2 / (1 - sizes / n)).sum() / n**2)


def bell_mccaffrey_df(sizes: Floats) -> float:
    """Satterthwaite degrees of freedom of the CR2 variance under a working model of independent pairs (Bell and McCaffrey 2002).

    With w = 1 / (n^2 (1 - m/n)) and G = outer(sqrt w, sqrt w) * (diag(m) - outer(m, m)/n): tr(G)^2 / sum G^2. Both sums are
    written out, so that the cost is linear in the clusters.
    """
    n = sizes.sum()
    w = 1 / (n**2 * (1 - sizes / n))
    trace = (w * (sizes - sizes**2 / n)).sum()
    squares = (w**2 * (sizes**2 - 2 * sizes**3 / n)).sum() + ((w * sizes**2).sum() / n) ** 2
    return float(trace**2 / squares)


def t95(df: float) -> float:
    """Two-sided 95 % point of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.975))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its 95 % bootstrap interval. None where it is undefined; low and high None below three clusters.

    `undefined` is the share of resamples in which the statistic does not exist; they are left out of the interval.
    """

    value: float | None
    low: float | None
    high: float | None
    clusters: int
    undefined: float


def cluster_bootstrap(
    sums: Floats, statistic: Callable[[Floats], Floats], *, resamples: int = 10_000, seed: int = 0
) -> list[Estimate]:
    """Percentile intervals from whole clusters drawn with replacement (Davison and Hinkley 1997, s. 3.8).

    sums (clusters, columns): what the statistic needs of each cluster, added over its pairs. `statistic` maps totals
    (..., columns) to values (..., statistics), NaN where undefined. Returns one estimate a statistic.

    Clusters with equal sums are exchangeable, so one multinomial draw over the distinct ones is one resample.
    """
    clusters = len(sums)
    value = statistic(sums.sum(axis=0, keepdims=True))[0]
    if clusters < FEWEST:
        return [Estimate(_number(one), None, None, clusters, 0.0) for one in value]
    distinct, counts = np.unique(sums, axis=0, return_counts=True)
    random = np.random.default_rng(seed)
    step = max(1, _DRAWS_AT_ONCE // len(distinct))
    values = np.concatenate(
        [
            statistic(random.multinomial(clusters, counts / clusters, size=min(step, resamples - done)) @ distinct)
            for done in range(0, resamples, step)
        ]
    )
    return [_estimate(one, draws, clusters) for one, draws in zip(value, values.T, strict=True)]


def _estimate(value: float, draws: Floats, clusters: int) -> Estimate:
    defined = draws[~np.isnan(draws)]
    undefined = 1 - len(defined) / len(draws)
    if np.isnan(value) or not len(defined):
        return Estimate(_number(value), None, None, clusters, undefined)
    low, high = np.percentile(defined, [2.5, 97.5])
    return Estimate(float(value), float(low), float(high), clusters, undefined)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
