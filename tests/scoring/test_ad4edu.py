"""The installed package `ad4edu` as the scorer, tested against a stand-in module of its name."""

import sys
from types import ModuleType

import pytest

from ad4edu_train.data.prompt_fields import parse_prompt
from ad4edu_train.data.vocabulary import COMPONENTS
from ad4edu_train.errors import DataError, UserError
from ad4edu_train.scoring import Moment, load_standard
from ad4edu_train.scoring.ad4edu import MODULE
from ad4edu_train.scoring.tiers import Tier, rater

MOMENTS = [
    Moment(moment_type="figure", transcript="a", ocr="b", on_screen="c", pause_s=4.0),
    Moment(moment_type="slide", transcript="d"),
]
RATE = {"name": "mech", "scorer": "ad4edu"}


@pytest.fixture
def stand_in(monkeypatch):
    """The package as the card describes it: rate_pairs gives each side the share of its words that are short."""
    seen = []

    def rate_pairs(rows):
        seen.extend(rows)
        results = []
        for row in rows:
            result = {}
            for side in ("chosen", "rejected"):
                rating = len(row[side][-1]["content"]) / 100
                result |= {
                    f"{side}-rating": rating,
                    f"{side}-components": {name: rating if name == "style" else None for name in COMPONENTS},
                }
            results.append(result)
        return results

    for name in ("ad4edu", "ad4edu.validation", MODULE):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["ad4edu"].__version__ = "3.1"
    sys.modules[MODULE].rate_pairs = rate_pairs
    return seen


def test_its_rate_pairs_rates_both_sides_of_a_moment(stand_in):
    scores = rater(Tier(**RATE), load_standard())(["a" * 10, "a" * 20, "a" * 30], [MOMENTS[0], MOMENTS[0], MOMENTS[1]])
    assert [one.rating for one in scores] == [0.1, 0.2, 0.3]
    assert scores[0].components["style"] == 0.1
    assert scores[0].components["faithfulness"] is None
    assert scores[0].scorer_id == "ad4edu/3.1/mech"
    assert len(stand_in) == 2
    fields = parse_prompt(stand_in[0]["prompt"])
    assert (fields.moment_type, fields.transcript, fields.ocr, fields.on_screen, fields.pause_s) == (
        "figure",
        "a",
        "b",
        "c",
        4.0,
    )


def test_odd_results_are_refused(stand_in):
    sys.modules[MODULE].rate_pairs = lambda rows: [{"chosen-rating": 7, "rejected-rating": 0.5}] * len(rows)
    with pytest.raises(DataError, match="no score in"):
        rater(Tier(**RATE), load_standard())(["a", "b"], [MOMENTS[0]] * 2)
    sys.modules[MODULE].rate_pairs = lambda rows: []
    with pytest.raises(DataError, match="0 results for 1 pairs"):
        rater(Tier(**RATE), load_standard())(["a", "b"], [MOMENTS[0]] * 2)


def test_without_the_package_it_says_so():
    with pytest.raises(UserError, match="cannot be imported"):
        rater(Tier(**RATE), load_standard())(["a"], MOMENTS[:1])


def test_other_tiers_are_our_own():
    with pytest.raises(UserError, match="its own mechanical tier"):
        rater(Tier(name="local", scorer="ad4edu"), load_standard())
