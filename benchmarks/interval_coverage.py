"""Coverage of the intervals, level and power of the paired test, by simulation: `python benchmarks/interval_coverage.py [--quick]`.

Correlated pairs come from beta-binomial and Dirichlet-multinomial clusters with fixed seeds. Each cell is one line of
benchmarks/out/interval_coverage.json, with the bar it must meet; exit code 1 when one does not. --quick runs fewer replicates,
widens each bar by three Monte Carlo standard errors, and writes nothing.

The bar of 3 to 11 moments holds over their sizes. Given the sizes no interval can hold it: three moments of one pair each, at a rate
of 95 %, agree wholly in 86 % of draws, and two of three has an upper end of 94 %.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from ad4edu_train.stats import clustered_interval, paired_difference, sign_flip

OUT = Path(__file__).parent / "out" / "interval_coverage.json"
FULL, QUICK = 4000, 400
RATES, ICCS, LECTURE_ICCS = (0.5, 0.6, 0.7, 0.85, 0.95), (0.0, 0.2, 0.5), (0.0, 0.02, 0.05)
CARD = np.repeat([1, 2, 3, 4], [185, 52, 25, 9])  # 400 pairs over 271 moments
STRATUM = np.repeat([1, 2, 3, 4], [20, 6, 2, 2])  # 46 pairs over 30 moments
LECTURES = 27
Random = np.random.Generator


@dataclass(frozen=True)
class Cell:
    """A share of replicates in percent, and the bar it stands under."""

    design: str
    setting: str
    percent: float
    low: float
    high: float
    replicates: int

    def met(self, slack: float) -> bool:
        return self.low - slack <= self.percent <= self.high + slack


def rates_of(random: Random, mean: np.ndarray, icc: float, size: tuple[int, ...]) -> np.ndarray:
    """Cluster rates with intra-cluster correlation `icc` around `mean`; a beta distribution, as in the beta-binomial."""
    if icc == 0:
        return np.broadcast_to(mean, size)
    strength = (1 - icc) / icc
    # Parameters near 0 give rates of exactly 0 or 1, which is the right limit.
    return random.beta(np.maximum(mean * strength, 1e-9), np.maximum((1 - mean) * strength, 1e-9), size)


def agreements(random: Random, sizes: np.ndarray, rate: float, icc: float, replicates: int) -> np.ndarray:
    size = (replicates, sizes.shape[-1])
    return random.binomial(sizes, rates_of(random, np.array(rate), icc, size))


def differences(
    random: Random, sizes: np.ndarray, q: float, difference: float, icc: float, replicates: int
) -> tuple[np.ndarray, np.ndarray]:
    """(only the first right, only the second right) a cluster: Dirichlet-multinomial, so that each indicator has this ICC."""
    means = np.array([(q + difference) / 2, (q - difference) / 2, 1 - q])
    shape = (replicates, len(sizes))
    p = random.dirichlet(means * (1 - icc) / icc, size=shape) if icc else np.broadcast_to(means, (*shape, 3))
    only_first = random.binomial(sizes, p[..., 0])
    rest = np.where(p[..., 0] < 1, 1 - p[..., 0], 1)
    return only_first, random.binomial(sizes - only_first, np.clip(p[..., 1] / rest, 0, 1))


def covered(sums: np.ndarray, sizes: np.ndarray, rate: float) -> float:
    """Percent of replicates (rows) whose interval holds the rate; sizes (clusters,), or (replicates, clusters)."""
    intervals = [clustered_interval(y, m) for y, m in zip(sums, np.broadcast_to(sizes, sums.shape), strict=True)]
    return 100 * float(np.mean([one.low <= rate <= one.high for one in intervals]))


def coverage_cells(replicates: int, seed: int) -> list[Cell]:
    cells = []
    for name, sizes, low, high in (("400 pairs, 271 moments", CARD, 93.0, 97.0), ("46 pairs, 30 moments", STRATUM, 93.5, 98.5)):
        for rate in RATES:
            for icc in ICCS:
                random = np.random.default_rng([seed, len(sizes), int(100 * rate), int(100 * icc)])
                share = covered(agreements(random, sizes, rate, icc, replicates), sizes, rate)
                cells.append(Cell(name, f"rate {rate}, ICC {icc}", share, low, high, replicates))
    for clusters in range(3, 12):
        for rate in RATES:
            for icc in ICCS:
                random = np.random.default_rng([seed, clusters, int(100 * rate), int(100 * icc)])
                # Sizes are drawn anew in each replicate: with one draw the few possible shares would decide, not the interval.
                sizes = random.choice([1, 2, 3, 4], (replicates, clusters), p=np.array([185, 52, 25, 9]) / 271)
                share = covered(agreements(random, sizes, rate, icc, replicates), sizes, rate)
                cells.append(Cell(f"{clusters} moments", f"rate {rate}, ICC {icc}", share, 91.5, 100.0, replicates))
    return cells


def lecture_cells(replicates: int, seed: int) -> list[Cell]:
    """Moments within lectures, clustered by lecture: moments correlate at .2, lectures at up to .05."""
    cells = []
    for rate in RATES:
        for icc in LECTURE_ICCS:
            random = np.random.default_rng([seed, 27, int(100 * rate), int(100 * icc)])
            lecture = np.sort(np.concatenate([np.arange(LECTURES), random.integers(0, LECTURES, len(CARD) - LECTURES)]))
            sizes = random.permutation(CARD)
            by_lecture = rates_of(random, np.array(rate), icc, (replicates, LECTURES))
            moments = rates_of(random, by_lecture[:, lecture], 0.2, (replicates, len(sizes)))
            agree = random.binomial(sizes, moments)
            starts = np.searchsorted(lecture, np.arange(LECTURES))
            share = covered(np.add.reduceat(agree, starts, axis=1), np.add.reduceat(sizes, starts), rate)
            cells.append(Cell("27 lectures", f"rate {rate}, lecture ICC {icc}", share, 92.5, 98.5, replicates))
    return cells


def paired_cells(replicates: int, seed: int) -> list[Cell]:
    cells = []
    for name, sizes, low in (("400 pairs, 271 moments", CARD, 3.8), ("46 pairs, 30 moments", STRATUM, 0.0)):
        for icc in ICCS:
            random = np.random.default_rng([seed, 7, len(sizes), int(100 * icc)])
            first, second = differences(random, sizes, 0.2, 0.0, icc, replicates)
            rejected = 100 * float(np.mean([sign_flip(row).p_mid <= 0.05 for row in first - second]))
            cells.append(Cell(f"sign flip, no difference, {name}", f"ICC {icc}", rejected, low, 6.3, replicates))
    random = np.random.default_rng([seed, 8])
    first, second = differences(random, CARD, 0.2, 0.08, 0.2, replicates)
    power = 100 * float(np.mean([sign_flip(row).p_mid <= 0.05 for row in first - second]))
    cells.append(Cell("sign flip, 8 points, 400 pairs", "q 0.2, ICC 0.2", power, 88.0, 100.0, replicates))
    for name, sizes in (("400 pairs, 271 moments", CARD), ("46 pairs, 30 moments", STRATUM)):
        for difference in (0.0, 0.08):
            for icc in ICCS:
                random = np.random.default_rng([seed, 9, len(sizes), int(100 * difference), int(100 * icc)])
                first, second = differences(random, sizes, 0.2, difference, icc, replicates)
                found = [paired_difference(b, c, sizes) for b, c in zip(first, second, strict=True)]
                share = 100 * float(np.mean([one.low <= difference <= one.high for one in found]))
                # No bar was set for this interval; those of the share with the same pairs are used.
                low, high = (93.0, 97.0) if sizes is CARD else (93.0, 100.0)
                cells.append(Cell(f"paired difference, {name}", f"{difference}, ICC {icc}", share, low, high, replicates))
    return cells


SECTIONS: tuple[Callable[[int, int], list[Cell]], ...] = (coverage_cells, lecture_cells, paired_cells)


def slack(cell: Cell, quick: bool) -> float:
    """Three Monte Carlo standard errors at the nearest bar, in points; none at full size."""
    bar = min((cell.low, cell.high), key=lambda end: abs(end - cell.percent)) / 100
    return 300 * sqrt(max(bar * (1 - bar), 0.01) / cell.replicates) if quick else 0.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} replicates instead of {FULL}")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    cells = [cell for section in SECTIONS for cell in section(QUICK if options.quick else FULL, 5)]
    seconds = time.perf_counter() - begin
    failed = [cell for cell in cells if not cell.met(slack(cell, options.quick))]
    for design in dict.fromkeys(cell.design for cell in cells):
        of_design = [cell for cell in cells if cell.design == design]
        shares, bar = [cell.percent for cell in of_design], of_design[0]
        print(f"{design}: {min(shares):.1f} to {max(shares):.1f} % in {len(shares)} cells (bar {bar.low} to {bar.high})")
    for cell in failed:
        print(f"FAILED {cell}")
    print(f"{len(cells) - len(failed)} of {len(cells)} cells meet their bar; {seconds:.0f} s")
    if not options.quick:
        OUT.parent.mkdir(exist_ok=True)
        rows = [cell.__dict__ | {"met": cell.met(0)} for cell in cells]
        OUT.write_text(json.dumps({"seconds": round(seconds, 1), "cells": rows}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
