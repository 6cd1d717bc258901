"""One call for every tier: descriptions and moments in, scores out. Tiers beside mech are imported when they are asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ad4edu_train.errors import UserError
from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.scorer import Score, score_many
from ad4edu_train.scoring.standard import Standard

Rate = Callable[[Sequence[str], Sequence[Moment]], list[Score]]
SCORERS = ("own", "ad4edu")


@dataclass(frozen=True, kw_only=True)
class Tier:
    """Settings of a tier, as the command line gives them. cache: folder of the judge's answers."""

    name: str = "mech"
    scorer: str = "own"
    approve_spend: bool = False
    nli_model: str | None = None
    encoder: str | None = None
    endpoint: str | None = None
    judge_model: str | None = None
    cache: Path | None = None


def refuse_unapproved() -> None:
    raise UserError(
        "--tier rubric asks a language model, which costs money for each description. Give --i-approve-spend to allow it.\n"
        "Nothing was sent, and no key was read. The tiers mech and local cost nothing."
    )


def rater(tier: Tier, standard: Standard) -> Rate:
    """The function that rates with this tier. Raises UserError before anything is loaded or sent where the tier may not run."""
    if tier.name == "rubric" and not tier.approve_spend:
        refuse_unapproved()
    if tier.scorer == "ad4edu":
        if tier.name != "mech":
            raise UserError("--scorer ad4edu rates with its own mechanical tier; leave --tier out.")
        from ad4edu_train.scoring.ad4edu import rate_with_ad4edu

        return rate_with_ad4edu
    if tier.name == "local":
        from ad4edu_train.scoring.local.tier import local_rater

        return local_rater(standard, nli_model=tier.nli_model, encoder=tier.encoder)
    if tier.name == "rubric":
        from ad4edu_train.scoring.rubric.tier import rubric_rater

        return rubric_rater(standard, endpoint=tier.endpoint, model=tier.judge_model, cache=tier.cache)
    return lambda ads, moments: score_many(ads, moments, standard=standard)
