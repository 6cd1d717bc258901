"""What agreement would be at no difference in length: logistic regression, read at covariates of zero."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ad4edu_train.stats.clusters import FEW, Codes

SEPARATED = "separated: the covariates tell every outcome, so there is no estimate"
NO_VARIATION = "every outcome is the same"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtZero:
    """Probability of the outcome at covariates of zero, with 95 % interval; slopes in log-odds a standard deviation.

    None where it cannot be estimated, and `note` says why.
    """

    share: float | None
    low: float | None
    high: float | None
    slopes: list[float]
    pairs: int
    note: str = ""


def at_zero(outcome: ArrayLike, covariates: ArrayLike, clusters: Codes) -> AtZero:
    """Logit of a binary outcome on covariates, and what it predicts where all of them are 0.

    outcome (pairs,) of 0 and 1, covariates (pairs, k), clusters (pairs,). Cluster-robust variance (Liang and Zeger 1986), t
    quantile with clusters - 1 degrees of freedom. For length-controlled agreement the outcome is whether the predictor agrees
    and the covariate the length of the side it prefers less that of the other, as in Dubois et al. (2024, arXiv 2404.04475, eq. 2,
    without their tanh): a predictor that only prefers the longer side gets what agreement is left where lengths are equal.
    """
    y, x = np.asarray(outcome, dtype=np.float64), np.asarray(covariates, dtype=np.float64)
    if x.ndim != 2 or len(x) != len(y) or len(y) != len(clusters):
        raise ValueError(f"outcome {y.shape}, covariates {x.shape} and clusters {clusters.shape} do not fit together")
    if not np.all((y == 0) | (y == 1)):
        raise ValueError("outcomes must be 0 or 1")
    groups = len(np.unique(clusters))
    if groups < FEW:
        return _none(len(y), f"fewer than {FEW} clusters")
    if y.min() == y.max():
        return _none(len(y), NO_VARIATION)
    # Scaled, never centred: zero has a meaning. A covariate that is always zero says nothing and is left out.
    scale = np.sqrt((x**2).mean(axis=0))
    used = scale > 0
    return _fit(y, x[:, used] / scale[used], clusters)


def _fit(y: np.ndarray, x: np.ndarray, clusters: Codes) -> AtZero:
    from statsmodels.discrete.discrete_model import Logit
    from statsmodels.tools.sm_exceptions import ConvergenceWarning, HessianInversionWarning, PerfectSeparationWarning

    design = np.column_stack([np.ones(len(y)), x])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return _none(len(y), "the covariates are the same in every pair, or copies of one another")
    with warnings.catch_warnings():
        for trouble in (ConvergenceWarning, HessianInversionWarning, PerfectSeparationWarning, RuntimeWarning):
            warnings.simplefilter("error", trouble)
        try:
            fitted = Logit(y, design).fit(disp=0, maxiter=100, cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
        except (ConvergenceWarning, HessianInversionWarning, PerfectSeparationWarning, RuntimeWarning, np.linalg.LinAlgError):
            return _none(len(y), SEPARATED)
    low, high = fitted.conf_int()[0]
    share, low, high = (float(1 / (1 + np.exp(-value))) for value in (fitted.params[0], low, high))
    return AtZero(share=share, low=low, high=high, slopes=[float(b) for b in fitted.params[1:]], pairs=len(y))


def _none(pairs: int, note: str) -> AtZero:
    return AtZero(share=None, low=None, high=None, slopes=[], pairs=pairs, note=note)
