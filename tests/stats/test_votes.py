"""Readings and majorities, counted by hand."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from ad4edu_train.stats import (
    agreement_with_votes,
    choices_of,
    majority,
    null_winners,
    on_card,
    plurality,
    readings,
    together,
    vote_splits,
)

A, T, B, X = 0, 1, 2, -1


def test_fastchat_1886_both_conventions_stand_side_by_side():
    """Fault fastchat-1886: 4 agree, 2 disagree, 3 pairs without a human winner, 1 tie of the predictor."""
    winners = np.array([A, A, B, B, A, B, X, X, X, A])
    values = [1.5, 0.2, -3.0, -0.1, -1.0, 2.0, 1.0, -1.0, 0.0, 0.0]
    counted = readings(winners, choices_of(values))
    assert (counted.pairs, counted.directed, counted.agree, counted.disagree, counted.ties) == (10, 7, 4, 2, 1)
    assert counted.decided_only == (4, 6)
    assert counted.ties_fail == (4, 7)
    assert counted.half_credit == (4.5, 7)
    assert on_card(*counted.decided_only) == "66.7% [30.0, 90.3] (k=4, n=6)"
    assert on_card(*counted.ties_fail) == "57.1% [25.0, 84.2] (k=4, n=7)"


def test_abstentions_are_no_ties():
    counted = readings(np.array([A, A, B]), choices_of([float("nan"), None, 0.0]))
    assert (counted.abstained, counted.ties, counted.decided_only, counted.half_credit) == (2, 1, (0, 0), (0.5, 3))


@pytest.mark.parametrize(
    ("votes", "side", "most"),
    [
        ([A, A, A, A], A, A),
        ([A, T, T, T], A, T),
        ([A, B, T, T], X, T),
        ([A, A, B, B], X, X),
        ([T, T, T, T], X, T),
        ([X, X, X, X], X, X),
        ([B, X, X, X], B, B),
        ([A, T, B, X], X, X),
    ],
)
def test_majorities(votes, side, most):
    assert majority(np.array([votes])) == [side]
    assert plurality(np.array([votes])) == [most]


def test_null_winners_by_reason():
    votes = np.array([[T, T, X, X], [A, B, T, T], [A, A, B, B], [X, X, X, X], [A, T, T, T]])
    found = null_winners(votes)
    assert (found.all_tie, found.even_split, found.no_vote) == (1, 2, 1)


def test_splits_and_individual_votes():
    votes = np.array([[A, A, A, A], [B, B, A, B], [A, T, X, T], [A, B, A, B], [T, T, X, T]])
    assert vote_splits(votes) == ["4-0", "3-1", "1-0", "2-2", "0-0"]
    alike, voted = agreement_with_votes(votes, np.array([A, B, T, A, A]))
    assert alike.tolist() == [4, 3, 0, 2, 0]
    assert voted.tolist() == [4, 4, 0, 4, 0]


def test_pairwise_agreement_with_and_without_ties():
    one, other = np.array([A, A, T, B, T, X, A]), np.array([A, B, T, B, A, B, X])
    found = together(one, other)
    assert (found.both_voted, found.same, found.both_decided, found.same_side) == (5, 3, 3, 2)
    assert found.kappa == pytest.approx(cohen_kappa_score(one[:5], other[:5]))
    assert together(np.array([A]), np.array([A])).kappa is None
    assert together(np.array([X]), np.array([A])).kappa is None


def test_nothing_to_count():
    none = np.array([], dtype=int)
    assert readings(none, none).ties_fail == (0, 0)
    assert majority(np.empty((0, 4), dtype=int)).tolist() == []
    assert together(none, none).both_voted == 0
