"""Intervals for shares of pairs. Pure functions."""

from dataclasses import dataclass
from math import sqrt

# Two-sided 95 % point of the standard normal distribution.
Z95 = 1.959964


@dataclass(frozen=True, slots=True)
class Interval:
    """A share and its 95 % interval, all in [0, 1]."""

    share: float
    low: float
    high: float


def wilson(k: int, n: int, z: float = Z95) -> Interval | None:
    """95 % score interval for a proportion (Wilson 1927, JASA 22, p. 209).

    k of n units agree; units are taken as independent, which pairs of one moment are not. None when n is 0: no data is not 0 %.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share")
    if n == 0:
        return None
    p, zz = k / n, z * z
    centre = (p + zz / (2 * n)) / (1 + zz / n)
    half = z / (1 + zz / n) * sqrt(p * (1 - p) / n + zz / (4 * n * n))
    return Interval(p, max(0.0, centre - half), min(1.0, centre + half))


def on_card(k: int, n: int) -> str:
    """A share as the data set card prints it: `82.5% [76.5, 87.2] (k=160, n=194)`; a dash where there is nothing to count."""
    interval = wilson(k, n)
    if interval is None:
        return "-"
    return f"{100 * interval.share:.1f}% [{100 * interval.low:.1f}, {100 * interval.high:.1f}] (k={k}, n={n})"
