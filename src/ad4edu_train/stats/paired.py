"""Two predictors on the same pairs: tests, intervals and what could be detected. Pure functions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from ad4edu_train.stats.clusters import FEW, FEWEST, Z95, Floats, bell_mccaffrey_df, cr2_variance, kish, t95
from ad4edu_train.stats.intervals import WORST_CASE

LARGE = 250  # pairs from which the linear interval of a difference holds its level
NO_DISCORDANCE = "no discordance"
_CUT = 1e-40  # probabilities below are dropped while sums are convolved; a p-value below about 1e-38 reads 0
_LOOP = 64  # outcomes up to which adding shifted copies is faster than a convolution


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlip:
    """p-values of the sign-flip test. p_smallest is what `clusters` discordant clusters could give at best (p_exact)."""

    p_exact: float
    p_mid: float
    p_smallest: float
    clusters: int
    note: str = ""


def sign_flip(differences: ArrayLike) -> SignFlip:
    """Two-sided randomisation test of no difference (Fisher 1935, s. 21), exact by convolution: no random numbers.

    differences (clusters,): whole numbers, the sum over a cluster's pairs of (first right - second right). Under the null each
    cluster's sign is a fair coin. With T = |sum D| and N[k] clusters of |D| = k, S = sum of k (2 Binom(N[k], 1/2) - N[k]):
    p_exact = P(|S| >= T), p_mid = P(|S| > T) + P(|S| = T) / 2 (Lancaster 1961). No non-zero difference: p = 1.
    """
    d = np.asarray(differences, dtype=np.float64)
    if not np.all(d == np.round(d)):
        raise ValueError("differences must be whole numbers (double them where half credit is given)")
    sizes = Counter(int(size) for size in np.abs(d) if size)
    clusters = sizes.total()
    if not clusters:
        return SignFlip(p_exact=1.0, p_mid=1.0, p_smallest=1.0, clusters=0, note=NO_DISCORDANCE)
    total, observed = sum(k * n for k, n in sizes.items()), int(abs(d.sum()))
    start, pmf = _sum_of_flips(sizes)
    distance = np.abs(2 * (start + np.arange(len(pmf))) - total)
    beyond, at = float(pmf[distance > observed].sum()), float(pmf[distance == observed].sum())
    return SignFlip(
        p_exact=min(1.0, beyond + at), p_mid=min(1.0, beyond + at / 2), p_smallest=0.5 ** (clusters - 1), clusters=clusters
    )


def _sum_of_flips(sizes: Counter[int]) -> tuple[int, Floats]:
    """(first value, probabilities) of the sum of k Binom(N[k], 1/2) over k."""
    from scipy.stats import binom

    start = 0
    f: Floats = np.ones(1)
    # The most frequent size first: its outcomes are many, and f is short then.
    for k, n in sizes.most_common():
        pmf = binom.pmf(np.arange(n + 1), n, 0.5)
        first, pmf = _trimmed(pmf)
        if len(pmf) <= _LOOP:
            g = np.zeros(len(f) + k * (len(pmf) - 1))
            for outcome, p in enumerate(pmf):
                g[k * outcome : k * outcome + len(f)] += p * f
        else:
            kernel = np.zeros(k * (len(pmf) - 1) + 1)
            kernel[::k] = pmf
            g = np.convolve(f, kernel).astype(np.float64)
        skipped, f = _trimmed(g)
        start += k * first + skipped
    return start, f


def _trimmed(pmf: Floats) -> tuple[int, Floats]:
    kept = np.flatnonzero(pmf > _CUT)
    return int(kept[0]), pmf[kept[0] : kept[-1] + 1]


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Exact two-sided p-value on discordant pairs (McNemar 1947, with the binomial distribution); pairs taken as independent."""
    from scipy.stats import binomtest

    discordant = only_first + only_second
    return float(binomtest(only_first, discordant).pvalue) if discordant else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Share right of the first minus that of the second, on the same pairs; in [-1, 1]. Fields as in `ClusteredInterval`."""

    difference: float
    low: float | None
    high: float | None
    pairs: int
    clusters: int
    deff: float | None = None
    df: float | None = None
    note: str = ""


def paired_difference(
    only_first: ArrayLike, only_second: ArrayLike, pairs: ArrayLike, unit: str = "moments"
) -> PairedDifference | None:
    """95 % interval of the difference of two shares on the same clustered pairs. None when there is no pair.

    only_first, only_second, pairs (clusters,): pairs of each cluster that only the first, only the second has right; all pairs.
    From 250 pairs: difference +- t sqrt(V), CR2 and Bell-McCaffrey. Below: Bonett and Price (2012, Psychological Methods 17,
    eq. 6) on n/deff with the same t; Kish's worst case and a normal quantile below 12 clusters, and Kish's without variance.
    """
    b, c, m = (np.asarray(values, dtype=np.float64) for values in (only_first, only_second, pairs))
    if not (b.shape == c.shape == m.shape and m.ndim == 1):
        raise ValueError(f"only_first {b.shape}, only_second {c.shape} and pairs {m.shape} must be one number a cluster each")
    if np.any(b < 0) or np.any(c < 0) or np.any(b + c > m):
        raise ValueError("a cluster has more discordant pairs than pairs, or a negative number of them")
    b, c, m = b[m > 0], c[m > 0], m[m > 0]
    if not len(m):
        return None
    n, clusters = float(m.sum()), len(m)
    difference = float((b.sum() - c.sum()) / n)
    if clusters < FEWEST:
        return PairedDifference(
            difference=difference, low=None, high=None, pairs=int(n), clusters=clusters, note=f"too few {unit}"
        )
    independent = ((b.sum() + c.sum()) / n - difference**2) / n
    variance = cr2_variance(b - c, m)
    if clusters < FEW:
        effective, df, t, note = kish(m), None, Z95, WORST_CASE
    else:
        df, note = bell_mccaffrey_df(m), ""
        t = t95(df)
        effective = n / max(1.0, variance / independent) if independent > 0 else kish(m)
    if n >= LARGE and clusters >= FEW and variance > 0:
        low, high = difference - t * sqrt(variance), difference + t * sqrt(variance)
    else:
        low, high = _bonett_price(b.sum() / n, c.sum() / n, effective, t)
    return PairedDifference(
        difference=difference,
        low=max(-1.0, low),
        high=min(1.0, high),
        pairs=int(n),
        clusters=clusters,
        deff=n / effective,
        df=df,
        note=note,
    )


def _bonett_price(first: float, second: float, n: float, z: float) -> tuple[float, float]:
    """Adjusted Wald interval for paired proportions: one pair is added to each discordant cell. first, second: shares of n."""
    p12, p21 = (first * n + 1) / (n + 2), (second * n + 1) / (n + 2)
    half = z * sqrt((p12 + p21 - (p12 - p21) ** 2) / (n + 2))
    return p12 - p21 - half, p12 - p21 + half


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for the family they stand in (Holm 1979), in the order given."""
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, method="holm")[1]] if len(p_values) else []


def detectable_difference(pairs: ArrayLike, *, discordance: float = 0.2, icc: float = 0.2) -> float | None:
    """Smallest difference of two shares found at 80 % power in a two-sided 5 % test, as a share; None without pairs.

    pairs (clusters,). discordance q: share of pairs on which the two differ. 2.80 sqrt(q deff / n), where 2.80 is the sum of the
    97.5 % and 80 % points of the normal distribution and deff = 1 + icc (sum m^2 / sum m - 1) (Donner and Klar 2000, s. 5.3).
    """
    m = np.asarray(pairs, dtype=np.float64)
    n = m.sum()
    if n == 0:
        return None
    deff = 1 + icc * ((m**2).sum() / n - 1)
    return 2.80 * sqrt(discordance * deff / n)
