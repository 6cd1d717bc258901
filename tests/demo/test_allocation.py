"""Counts of the corpus against the figures printed on the data set card, typed here from the card."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ad4edu_train.demo.allocation import allocate, bounded, largest_remainder, margins

CARD = {
    "train": {
        "subject": {
            "Anatomy": (19, 223, 1025),
            "Biology": (12, 203, 984),
            "Machine learning": (4, 206, 519),
            "Mathematics": (5, 91, 538),
            "Psychology": (9, 85, 474),
        },
        "type_pairs": "pointing 2033 slide 850 figure 288 reveal 183 animation 67 ink 32 math 36 "
        "table 21 chart 17 transition 13",
    },
    "test": {
        "subject": {
            "Anatomy": (6, 33, 54),
            "Biology": (5, 31, 42),
            "Machine learning": (11, 176, 260),
            "Psychology": (5, 31, 44),
        },
        "type_pairs": "pointing 286 slide 46 figure 46 reveal 6 animation 7 ink 4 table 1 chart 3 transition 1",
    },
}
TRAIN_TYPE_MOMENTS = "animation 19 chart 4 figure 63 ink 6 math 15 pointing 418 reveal 62 slide 221 table 7 transition 2"
TRAIN_AXES = {
    "deixis": (219, 114),
    "faithfulness": (145, 93),
    "length": (191, 117),
    "natural": (2501, 759),
    "non_redundancy": (170, 106),
    "style": (149, 92),
    "terminology": (165, 99),
}


def counts(text):
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


@pytest.fixture(scope="module", params=[0, 7])
def plans(request):
    every = allocate(271, request.param)
    return {split: [plan for plan in every if plan.split == split] for split in ("train", "test")}


@pytest.mark.parametrize("split", ["train", "test"])
def test_subjects_have_the_cards_lectures_moments_and_pairs(plans, split):
    found = {}
    for subject in {plan.subject for plan in plans[split]}:
        mine = [plan for plan in plans[split] if plan.subject == subject]
        found[subject] = (len({plan.lecture for plan in mine}), len(mine), sum(len(plan.pairs) for plan in mine))
    assert found == CARD[split]["subject"]


@pytest.mark.parametrize("split", ["train", "test"])
def test_types_have_the_cards_pairs(plans, split):
    assert Counter(pair[0] for plan in plans[split] for pair in plan.pairs) == counts(CARD[split]["type_pairs"])


def test_train_types_have_the_cards_moments(plans):
    assert Counter(kind for plan in plans["train"] for kind in {pair[0] for pair in plan.pairs}) == counts(TRAIN_TYPE_MOMENTS)


def test_train_axes_have_the_cards_pairs_and_moments(plans):
    pairs = Counter(pair[1] for plan in plans["train"] for pair in plan.pairs)
    moments = Counter(axis for plan in plans["train"] for axis in {pair[1] for pair in plan.pairs})
    assert {axis: (pairs[axis], moments[axis]) for axis in pairs} == TRAIN_AXES


def test_test_strata_have_the_cards_pairs(plans):
    strata = Counter(pair[2] for plan in plans["test"] for pair in plan.pairs)
    assert strata == {"natural_flip": 50, "controlled": 250, "natural_decided": 100}


def test_the_splits_share_sixteen_lectures(plans):
    train, test = ({plan.lecture for plan in plans[split]} for split in ("train", "test"))
    assert len(train & test) == 16


def test_same_family_pairs_are_the_cards_53(plans):
    assert sum(plan.same_family for plan in plans["train"]) == 53


@settings(max_examples=25, deadline=None)
@given(moments=st.integers(8, 130), seed=st.integers(0, 5))
def test_every_size_gives_the_moments_asked_for_and_as_many_pairs_as_its_margins(moments, seed):
    plans = allocate(moments, seed)
    for split in ("train", "test"):
        mine, wanted = [plan for plan in plans if plan.split == split], margins(split, moments)
        assert Counter(pair[0] for plan in mine for pair in plan.pairs) == Counter(wanted.type_pairs)
        assert all(plan.pairs for plan in mine)
    assert sum(plan.split == "test" for plan in plans) == moments


@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.integers(0, 3000))
def test_largest_remainder_keeps_the_total_and_is_within_one_of_the_exact_share(weights, total):
    table = dict(enumerate(weights))
    shares = largest_remainder(table, total)
    assert sum(shares.values()) == total
    assert all(abs(shares[key] - table[key] * total / sum(weights)) < 1 for key in table)


def test_bounded_refuses_a_total_that_cannot_fit():
    with pytest.raises(ValueError, match="do not fit"):
        bounded({"a": 5}, {"a": 0}, {"a": 3})
