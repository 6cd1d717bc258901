"""Intervals for shares of pairs. Pure functions."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from ad4edu_train.stats.clusters import FEW, FEWEST, Z95, bell_mccaffrey_df, cr2_variance, kish, t95

WORST_CASE = "small, worst-case ICC"


@dataclass(frozen=True, slots=True)
class Interval:
    """A share and its 95 % interval, all in [0, 1]."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredInterval:
    """A share of pairs that come in clusters. low and high are None below three clusters, and `note` says so.

    deff: design effect, pairs over effective pairs. df: degrees of freedom of the t quantile; None where a normal one stands.
    """

    share: float
    low: float | None
    high: float | None
    pairs: int
    clusters: int
    deff: float | None = None
    df: float | None = None
    note: str = ""


def wilson(k: int, n: int, z: float = Z95) -> Interval | None:
    """95 % score interval for a proportion (Wilson 1927, JASA 22, p. 209).

    k of n units agree; units are taken as independent, which pairs of one moment are not: see `clustered_interval`.
    None when n is 0: no data is not 0 %.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share")
    return None if n == 0 else _score(k / n, n, z)


def on_card(k: int, n: int) -> str:
    """A share as the data set card prints it: `82.5% [76.5, 87.2] (k=160, n=194)`; a dash where there is nothing to count."""
    interval = wilson(k, n)
    if interval is None:
        return "-"
    return f"{100 * interval.share:.1f}% [{100 * interval.low:.1f}, {100 * interval.high:.1f}] (k={k}, n={n})"


def clustered_interval(agree: ArrayLike, pairs: ArrayLike, unit: str = "moments") -> ClusteredInterval | None:
    """95 % interval of a share whose pairs come in clusters: Wilson on n/deff with CR2 variance and Bell-McCaffrey t.

    agree, pairs (clusters,): agreements and pairs of each cluster; `agree` may hold halves (half credit). Clusters without
    pairs are dropped. None when no pair is left. `unit` names the clusters in the note.

    Design effect of the CR2 variance (Bell and McCaffrey 2002), never below 1: Kish's worst case when every pair agrees or
    none does, because the variance then says nothing, and below 12 clusters, where it says too little. The score interval on
    effective counts follows Korn and Graubard (1998, Survey Methodology 24), with Wilson's in the place of Clopper and Pearson's.
    """
    m = np.asarray(pairs, dtype=np.float64)
    y = np.asarray(agree, dtype=np.float64)
    if m.shape != y.shape or m.ndim != 1:
        raise ValueError(f"agree {y.shape} and pairs {m.shape} must be one number a cluster each")
    if not (np.all(y >= 0) and np.all(y <= m)):
        raise ValueError("a cluster has more agreements than pairs, or a negative number of them")
    y, m = y[m > 0], m[m > 0]
    if not len(m):
        return None
    n, clusters = float(m.sum()), len(m)
    p = float(y.sum() / n)
    if clusters < FEWEST:
        return ClusteredInterval(share=p, low=None, high=None, pairs=int(n), clusters=clusters, note=f"too few {unit}")
    if clusters < FEW:
        effective, df, z, note = kish(m), None, Z95, WORST_CASE
    else:
        df, note = bell_mccaffrey_df(m), ""
        z = t95(df)
        binomial = p * (1 - p) / n
        effective = n / max(1.0, cr2_variance(y, m) / binomial) if 0 < p < 1 else kish(m)
    interval = _score(p, effective, z)
    return ClusteredInterval(
        share=p,
        low=interval.low,
        high=interval.high,
        pairs=int(n),
        clusters=clusters,
        deff=n / effective,
        df=df,
        note=note,
    )


def _score(p: float, n: float, z: float) -> Interval:
    zz = z * z
    centre = (p + zz / (2 * n)) / (1 + zz / n)
    half = z / (1 + zz / n) * sqrt(p * (1 - p) / n + zz / (4 * n * n))
    return Interval(p, max(0.0, centre - half), min(1.0, centre + half))
