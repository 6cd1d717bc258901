"""Counts by stratum against a direct recount, and the ties that must not turn into 0 % (fault fastchat-1886)."""

import random

import pytest

from ad4edu_train.agreement.strata import MIXTURE, count, strata
from ad4edu_train.data.rows import HumanPair, Side
from ad4edu_train.data.vocabulary import AXES, TYPES


def human_pair(
    number: int, winner: str | None, *, stratum="natural_decided", axis="natural", type_="slide", moment=None
) -> HumanPair:
    side = Side(user="p", ad="An AD.", model=None, rating=None, components=None)
    return HumanPair(
        pair_id=f"p{number}", moment_id=moment or f"m{number}", lecture="l", type=type_, axis=axis, source="natural_judged",
        label_source=None, cross_family=True, what_differs=None, prompt="p", prompt_id="x", first=side, second=side, stratum=stratum,
        labels_pending=False, raters={}, human_winner=winner, machine={}, machine_reasons={},
    )  # fmt: skip


def test_fastchat_1886_both_conventions_from_one_count():
    # 4 agree, 2 disagree, 3 without a human winner, 1 on which the predictor ties.
    winners = ["option_a"] * 6 + [None] * 3 + ["option_b"]
    values = [1.0] * 4 + [-1.0] * 2 + [1.0] * 3 + [0.0]
    pairs = [human_pair(number, winner) for number, winner in enumerate(winners)]
    stratum = next(strata(pairs))
    counted = count(pairs, stratum, "any", {pair.pair_id: value for pair, value in zip(pairs, values, strict=True)})
    assert (counted.pairs, counted.directed, counted.ties, counted.agree, counted.decided) == (10, 7, 1, 4, 6)


def test_a_base_models_reward_is_all_ties():
    pairs = [human_pair(number, "option_a") for number in range(5)]
    counted = count(pairs, next(strata(pairs)), "base", dict.fromkeys((pair.pair_id for pair in pairs), 0.0))
    assert (counted.ties, counted.decided, counted.agree) == (5, 0, 0)


def test_abstentions_and_missing_pairs_are_no_ties():
    pairs = [human_pair(number, "option_b") for number in range(3)]
    counted = count(pairs, next(strata(pairs)), "some", {"p0": None, "p1": -2.0})
    assert (counted.abstained, counted.ties, counted.agree, counted.decided) == (2, 0, 1, 1)


def test_strata_lead_with_natural_and_end_with_the_mixture():
    pairs = [
        human_pair(0, "option_a", stratum="controlled", axis="style"),
        human_pair(1, "option_a", stratum="natural_flip", type_="chart"),
        human_pair(2, None, type_="hologram"),
    ]
    names = [stratum.name for stratum in strata(pairs)]
    assert names == ["natural_decided", "natural_flip", "style", "controlled, all axes", "slide", "chart", "hologram", MIXTURE]


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_every_stratum_are_those_of_a_recount(seed):
    rng = random.Random(seed)
    pairs, values = [], {}
    for number in range(200):
        natural = rng.random() < 0.4
        pairs.append(
            human_pair(
                number,
                rng.choice(["option_a", "option_b", None]),
                stratum=rng.choice(["natural_decided", "natural_flip"]) if natural else "controlled",
                axis="natural" if natural else rng.choice(AXES[1:]),
                type_=rng.choice(TYPES),
                moment=f"m{rng.randrange(90)}",
            )
        )
        values[f"p{number}"] = rng.choice([1.5, -0.2, 0.0, None])
    for stratum in strata(pairs):
        counted = count(pairs, stratum, "p", values)
        members = [p for p in pairs if stratum.name in (p.stratum, p.axis, p.type, MIXTURE) or stratum.name == MIXTURE
                   or (stratum.name.startswith("controlled") and p.stratum == "controlled")]  # fmt: skip
        directed = [p for p in members if p.human_winner]
        agree = [p for p in directed if values[p.pair_id] and (values[p.pair_id] > 0) == (p.human_winner == "option_a")]
        assert (counted.pairs, counted.directed, counted.agree) == (len(members), len(directed), len(agree))
        assert counted.moments == len({p.moment_id for p in members})
        assert counted.ties + counted.abstained + counted.decided == counted.directed
