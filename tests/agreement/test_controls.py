import dataclasses
import random

from ad4edu_train.agreement.controls import longer_side, shuffled_prompts, surface_classifier
from ad4edu_train.data.rows import PreferencePair
from tests.agreement.test_strata import human_pair


def with_ads(number: int, first: str, second: str):
    pair = human_pair(number, "option_a", moment=f"m{number // 3}")
    return dataclasses.replace(
        pair,
        prompt=f"prompt {number // 3}",
        first=dataclasses.replace(pair.first, ad=first),
        second=dataclasses.replace(pair.second, ad=second),
    )


def preference(number: int, chosen: str, rejected: str) -> PreferencePair:
    pair = with_ads(number, chosen, rejected)
    shared = {f.name: getattr(pair, f.name) for f in dataclasses.fields(PreferencePair)}
    return PreferencePair(**shared)


def test_longer_side_counts_words_and_ties_at_equal_length():
    pairs = [with_ads(0, "one two three", "one"), with_ads(1, "a", "a b"), with_ads(2, "x y", "longword other")]
    assert longer_side(pairs) == {"p0": 2.0, "p1": -1.0, "p2": 0.0}


def test_shuffled_prompts_gives_every_moment_one_wrong_prompt():
    pairs = [with_ads(number, "a", "b") for number in range(30)]
    shuffled = shuffled_prompts(pairs, seed=1)
    assert set(shuffled) == {pair.pair_id for pair in pairs}
    assert all(shuffled[pair.pair_id].moment_id != pair.moment_id for pair in pairs)
    by_moment = {(pair.moment_id, shuffled[pair.pair_id].moment_id) for pair in pairs}
    assert len(by_moment) == 10
    assert len({prompt for _, prompt in by_moment}) == 10
    assert shuffled_prompts(pairs, seed=1) == shuffled
    assert shuffled_prompts(pairs[:3], seed=1) == {}


def test_surface_classifier_finds_a_cue_where_there_is_one_and_none_where_there_is_none():
    rng = random.Random(0)
    words = ["red", "blue", "line", "curve", "box", "arrow", "cell", "nerve"]

    def ad(cue: str = "") -> str:
        return " ".join([*rng.choices(words, k=8), cue]).strip()

    cued = [preference(number, ad("precisely"), ad("whatever")) for number in range(80)]
    test = [with_ads(number, ad("precisely"), ad("whatever")) for number in range(40)]
    assert sum(value > 0 for value in surface_classifier(cued, test).values()) >= 38
    plain = [preference(number, ad(), ad()) for number in range(80)]
    right = sum(value > 0 for value in surface_classifier(plain, [with_ads(n, ad(), ad()) for n in range(200)]).values())
    assert 60 <= right <= 140


def test_surface_classifier_has_no_side():
    cued = [preference(number, f"good thing {number}", f"bad thing {number}") for number in range(20)]
    there = surface_classifier(cued, [with_ads(0, "good thing", "bad thing")])["p0"]
    back = surface_classifier(cued, [with_ads(0, "bad thing", "good thing")])["p0"]
    assert there > 0
    assert abs(there + back) < 1e-9


def test_without_training_pairs_the_classifier_abstains():
    assert surface_classifier([], [with_ads(0, "a", "b")]) == {"p0": None}
