"""Statistics for small clustered human sets: pure functions, no I/O. What a caller needs is imported from here."""

from ad4edu_train.stats.clusters import Estimate, cluster_bootstrap, cluster_codes, cluster_sums
from ad4edu_train.stats.intervals import ClusteredInterval, Interval, clustered_interval, on_card, wilson
from ad4edu_train.stats.length_control import AtZero, at_zero
from ad4edu_train.stats.paired import (
    PairedDifference,
    SignFlip,
    detectable_difference,
    holm,
    mcnemar_exact,
    paired_difference,
    sign_flip,
)
from ad4edu_train.stats.raters import fleiss_kappa, gwet_ac1, krippendorff_alpha, rater_coefficients
from ad4edu_train.stats.single_human import AgainstOthers, single_human_benchmark
from ad4edu_train.stats.votes import (
    NullWinners,
    Readings,
    Together,
    agreement_with_votes,
    choices_of,
    majority,
    null_winners,
    plurality,
    readings,
    together,
    vote_splits,
)

__all__ = [
    "AgainstOthers",
    "AtZero",
    "ClusteredInterval",
    "Estimate",
    "Interval",
    "NullWinners",
    "PairedDifference",
    "Readings",
    "SignFlip",
    "Together",
    "agreement_with_votes",
    "at_zero",
    "choices_of",
    "cluster_bootstrap",
    "cluster_codes",
    "cluster_sums",
    "clustered_interval",
    "detectable_difference",
    "fleiss_kappa",
    "gwet_ac1",
    "holm",
    "krippendorff_alpha",
    "majority",
    "mcnemar_exact",
    "null_winners",
    "on_card",
    "paired_difference",
    "plurality",
    "rater_coefficients",
    "readings",
    "sign_flip",
    "single_human_benchmark",
    "together",
    "vote_splits",
    "wilson",
]
