"""Agreement among raters: Krippendorff's alpha, Gwet's AC1, Fleiss' kappa, with missing votes. Pure functions.

All three are functions of sums over items, so a cluster bootstrap needs those sums once a cluster. Undefined is NaN in the
vectorised functions and None for callers.

Definitions, with n[u, k] raters who put item u in category k, r[u] its raters, K categories:

- alpha = 1 - D_o / D_e over items with two raters or more; coincidences o[c, k] = sum over items of n[u, c] (n[u, k] - [c = k]) /
  (r[u] - 1), nominal distance [c != k], ordinal distance (sum of n_g for g from c to k, less (n_c + n_k) / 2) squared
  (Krippendorff 2004, Content Analysis, s. 11.3). Undefined when only one category occurs.
- AC1 and Fleiss' kappa = (p_a - p_e) / (1 - p_e), p_a the mean over items with two raters or more of the share of rater pairs that
  agree. With pi[k] the mean over rated items of n[u, k] / r[u]: p_e = sum pi (1 - pi) / (K - 1) for AC1 (Gwet 2008, BJMSP 61),
  sum pi^2 for kappa (Fleiss 1971, Psychological Bulletin 76, with missing votes as in Gwet 2014, ch. 2).
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ad4edu_train.stats.clusters import Codes, Estimate, Floats, cluster_bootstrap, cluster_sums
from ad4edu_train.stats.votes import CATEGORIES

Level = Literal["nominal", "ordinal"]


def item_sums(votes: ArrayLike, categories: int = CATEGORIES) -> Floats:
    """What the coefficients need of each item, additive over items: votes (items, raters), -1 missing -> (items, columns).

    Columns: coincidences (K^2, row by row), the item's p_a, whether it has one, and n[u, k] / r[u] (K).
    """
    table = np.asarray(votes)
    if table.ndim != 2 or not np.all((table >= -1) & (table < categories)):
        raise ValueError(f"votes must be (items, raters) in -1 .. {categories - 1}")
    n = np.stack([(table == category).sum(axis=1) for category in range(categories)], axis=1).astype(np.float64)
    raters = n.sum(axis=1)
    several = raters >= 2
    pairs = np.where(several, raters * (raters - 1), 1)[:, None]
    same = n[:, :, None] * n[:, None, :] - n[:, :, None] * np.eye(categories)
    coincidences = same.reshape(len(n), categories**2) * several[:, None] / np.where(several, raters - 1, 1)[:, None]
    observed = (n * (n - 1)).sum(axis=1, keepdims=True) * several[:, None] / pairs
    share = n / np.maximum(raters, 1)[:, None]
    return np.concatenate([coincidences, observed, several[:, None], share], axis=1)


def alpha_of(sums: Floats, level: Level, categories: int = CATEGORIES) -> Floats:
    """Krippendorff's alpha of sums (..., columns) -> (...)."""
    o = sums[..., : categories**2].reshape(*sums.shape[:-1], categories, categories)
    totals = o.sum(axis=-1)
    distance = _distance(totals, level)
    observed = (o * distance).sum(axis=(-2, -1))
    expected = (totals[..., :, None] * totals[..., None, :] * distance).sum(axis=(-2, -1))
    # (n - 1) D_o / D_e with D_e over ordered pairs of values.
    return _ratio(expected - (totals.sum(axis=-1) - 1) * observed, expected)


def ac1_of(sums: Floats, categories: int = CATEGORIES) -> Floats:
    """Gwet's AC1 of sums (..., columns) -> (...)."""
    agree, pi = _agreement(sums, categories)
    chance = (pi * (1 - pi)).sum(axis=-1) / (categories - 1)
    return _ratio(agree - chance, 1 - chance)


def fleiss_of(sums: Floats, categories: int = CATEGORIES) -> Floats:
    """Fleiss' kappa of sums (..., columns) -> (...)."""
    agree, pi = _agreement(sums, categories)
    chance = (pi**2).sum(axis=-1)
    return _ratio(agree - chance, 1 - chance)


def krippendorff_alpha(votes: ArrayLike, level: Level = "nominal", categories: int = CATEGORIES) -> float | None:
    """Alpha of votes (items, raters), -1 missing; None where it is undefined."""
    return _number(alpha_of(item_sums(votes, categories).sum(axis=0), level, categories))


def gwet_ac1(votes: ArrayLike, categories: int = CATEGORIES) -> float | None:
    """AC1 of votes (items, raters), -1 missing; None where it is undefined. `categories` counts those that could be chosen."""
    return _number(ac1_of(item_sums(votes, categories).sum(axis=0), categories))


def fleiss_kappa(votes: ArrayLike, categories: int = CATEGORIES) -> float | None:
    """Fleiss' kappa of votes (items, raters), -1 missing; None where it is undefined."""
    return _number(fleiss_of(item_sums(votes, categories).sum(axis=0), categories))


def rater_coefficients(
    votes: ArrayLike, clusters: Codes, *, resamples: int = 10_000, seed: int = 0, categories: int = CATEGORIES
) -> dict[str, Estimate]:
    """All coefficients with cluster bootstrap intervals: votes (items, raters), clusters (items,)."""
    names = ("alpha_nominal", "alpha_ordinal", "ac1", "fleiss_kappa")

    def statistics(sums: Floats) -> Floats:
        nominal, ordinal = (alpha_of(sums, level, categories) for level in ("nominal", "ordinal"))
        return np.stack([nominal, ordinal, ac1_of(sums, categories), fleiss_of(sums, categories)], axis=-1)

    sums = cluster_sums(item_sums(votes, categories), clusters)
    return dict(zip(names, cluster_bootstrap(sums, statistics, resamples=resamples, seed=seed), strict=True))


def _distance(totals: Floats, level: Level) -> Floats:
    categories = totals.shape[-1]
    if level == "nominal":
        return 1 - np.eye(categories)
    # Cumulated to the middle of each category: between two middles lie all values between them and half of both ends.
    middle = np.cumsum(totals, axis=-1) - totals / 2
    return (middle[..., :, None] - middle[..., None, :]) ** 2


def _agreement(sums: Floats, categories: int) -> tuple[Floats, Floats]:
    start = categories**2
    share = sums[..., start + 2 :]
    return _ratio(sums[..., start], sums[..., start + 1]), _ratio(share, share.sum(axis=-1, keepdims=True))


def _ratio(over: Floats, under: Floats) -> Floats:
    """NaN where there is nothing to divide by."""
    return np.divide(over, under, out=np.full(np.broadcast_shapes(over.shape, under.shape), np.nan), where=under != 0)


def _number(value: Floats) -> float | None:
    return None if np.isnan(value) else float(value)
