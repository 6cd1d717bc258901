"""Agreement of predictors with human labels, counted by stratum. Pure: values in, counts out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ad4edu_train.data.rows import HumanPair
from ad4edu_train.data.vocabulary import AXES, STRATA, TYPES

# A signed preference for a pair: positive for option_a, negative for option_b, 0 a tie, None an abstention.
Preferences = Mapping[str, float | None]

MIXTURE = "all pairs: a designed mixture of strata, no population"


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One predictor in one stratum. Pairs without a human winner are counted in `pairs` and in no denominator.

    pairs = directed + undirected; directed = agree + disagree + ties + abstained.
    """

    block: str
    stratum: str
    predictor: str
    pairs: int
    moments: int
    directed: int
    ties: int
    abstained: int
    agree: int

    @property
    def decided(self) -> int:
        """Directed pairs on which the predictor decided."""
        return self.directed - self.ties - self.abstained


@dataclass(frozen=True)
class Stratum:
    """A named subset of the test pairs."""

    block: str
    name: str
    holds: Callable[[HumanPair], bool]


def strata(pairs: list[HumanPair]) -> Iterator[Stratum]:
    """Natural strata lead, controlled pairs by axis, moment types, and the mixture last; empty strata are left out."""
    candidates = [
        *(Stratum("natural pairs", name, _equals("stratum", name)) for name in STRATA if name.startswith("natural")),
        *(Stratum("controlled pairs by axis", name, _controlled_on(name)) for name in AXES if name != "natural"),
        Stratum("controlled pairs by axis", "controlled, all axes", _equals("stratum", "controlled")),
        *(Stratum("moment types, as classified on stills", name, _equals("type", name)) for name in _types(pairs)),
        Stratum("aggregate", MIXTURE, lambda pair: True),
    ]
    yield from (stratum for stratum in candidates if any(map(stratum.holds, pairs)))


def count(pairs: list[HumanPair], stratum: Stratum, predictor: str, preferences: Preferences) -> Agreement:
    """Count one predictor in one stratum. A pair that `preferences` lacks is an abstention."""
    members = [pair for pair in pairs if stratum.holds(pair)]
    directed = [pair for pair in members if pair.human_winner is not None]
    values = [preferences.get(pair.pair_id) for pair in directed]
    return Agreement(
        block=stratum.block,
        stratum=stratum.name,
        predictor=predictor,
        pairs=len(members),
        moments=len({pair.moment_id for pair in members}),
        directed=len(directed),
        ties=sum(value == 0 for value in values),
        abstained=sum(value is None for value in values),
        agree=sum(_side(value) == pair.human_winner for value, pair in zip(values, directed, strict=True)),
    )


def _side(value: float | None) -> str | None:
    if not value:
        return "tie"
    return "option_a" if value > 0 else "option_b"


def _equals(attribute: str, value: str) -> Callable[[HumanPair], bool]:
    return lambda pair: getattr(pair, attribute) == value


def _controlled_on(axis: str) -> Callable[[HumanPair], bool]:
    return lambda pair: pair.stratum == "controlled" and pair.axis == axis


def _types(pairs: list[HumanPair]) -> list[str]:
    return [*TYPES, *sorted({pair.type for pair in pairs} - set(TYPES))]
