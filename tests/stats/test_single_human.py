"""The single-human benchmark against a plain loop over raters and pairs."""

import numpy as np
import pytest

from ad4edu_train.stats import single_human_benchmark
from ad4edu_train.stats.single_human import HUMAN

A, T, B, X = 0, 1, 2, -1


def looped(votes, said):
    """(decided-only, ties = fail) averaged over raters; `said` None: the raters themselves."""
    decided, failing = [], []
    for rater in range(votes.shape[1]):
        agree = sides = pairs = 0
        for row, pair in enumerate(votes.tolist()):
            own = pair.pop(rater)
            first, second = pair.count(A), pair.count(B)
            if own == X or first == second:
                continue
            choice = own if said is None else said[row]
            pairs += 1
            sides += choice in (A, B)
            agree += choice == (A if first > second else B)
        if sides:
            decided.append(agree / sides)
        if pairs:
            failing.append(agree / pairs)
    return np.mean(decided), np.mean(failing)


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_a_plain_loop(seed):
    random = np.random.default_rng(seed)
    truth = random.choice([A, B], (120, 1))
    votes = np.where(random.random((120, 4)) < 0.6, truth, random.choice([A, T, B, X], (120, 4)))
    said = random.choice([A, T, B, X], 120)
    found = single_human_benchmark(votes, np.arange(120) // 2, {"model": said}, resamples=500)
    for name, choices in ((HUMAN, None), ("model", said)):
        row = found[name]
        assert (row.decided_only.value, row.ties_fail.value) == pytest.approx(looped(votes, choices))
        assert row.decided_only.low < row.decided_only.value < row.decided_only.high
    above = found["model"].ties_fail_above_human
    assert above.value == pytest.approx(found["model"].ties_fail.value - found[HUMAN].ties_fail.value)
    assert found[HUMAN].ties_fail_above_human is None


def test_no_rater_meets_a_majority_that_holds_their_vote():
    # Each rater alone against three of the other opinion: 0 %, though two of four always agree with the plain majority.
    votes = np.array([[A, B, B, B], [B, A, B, B], [B, B, A, B], [B, B, B, A]])
    human = single_human_benchmark(votes, np.arange(4), {}, resamples=100)[HUMAN]
    # On each pair three raters face two against one (their side), and the odd one faces three.
    assert human.counts == [(3, 4, 4)] * 4
    assert human.ties_fail.value == 0.75
    split = np.array([[A, A, B, B]] * 4)
    assert single_human_benchmark(split, np.arange(4), {}, resamples=100)[HUMAN].counts == [(0, 4, 4)] * 4


def test_a_rater_without_votes_is_left_out():
    votes = np.array([[A, A, A, X], [B, B, B, X], [A, A, B, X]])
    human = single_human_benchmark(votes, np.arange(3), {"always first": np.array([A, A, A])}, resamples=100)
    assert human[HUMAN].counts[3] == (0, 0, 0)
    assert human[HUMAN].ties_fail.value == pytest.approx(np.mean([1, 1, 2 / 3]))


def test_no_decided_vote_has_no_share():
    votes = np.full((5, 4), T)
    row = single_human_benchmark(votes, np.arange(5), {}, resamples=100)[HUMAN]
    assert (row.decided_only.value, row.ties_fail.value, row.ties_fail.undefined) == (None, None, 1)
