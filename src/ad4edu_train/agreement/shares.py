"""A share of clustered pairs as it stands in result files: counts, clustered interval, and the card's plain Wilson beside it."""

from dataclasses import asdict
from typing import Any

import numpy as np

from ad4edu_train.stats import cluster_sums, clustered_interval, wilson
from ad4edu_train.stats.clusters import Codes


def share(right: np.ndarray, counted: np.ndarray, codes: Codes, unit: str) -> dict[str, Any] | None:
    """k of n with intervals, None where nothing is counted. right, counted, codes (pairs,); `right` holds credits in [0, 1].

    `pair_level` takes pairs as independent; it is None for half credit, whose k is no count. `unit` names the clusters.
    """
    interval = clustered_interval(cluster_sums(right, codes), cluster_sums(counted, codes), unit)
    if interval is None:
        return None
    k, n = float(np.sum(right)), int(np.sum(counted))
    whole = not np.any(np.asarray(right, dtype=np.float64) % 1)
    plain = wilson(int(k), n) if whole else None
    return {"k": int(k) if whole else k, "n": n, "clustered": asdict(interval), "pair_level": asdict(plain) if plain else None}


def plain_share(k: int, n: int) -> dict[str, Any] | None:
    """k of n with a Wilson interval on independent units, None where nothing is counted."""
    interval = wilson(k, n)
    return {"k": k, "n": n, **asdict(interval)} if interval else None
