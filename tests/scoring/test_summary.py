"""Summaries: the card's intervals, and counts that can be checked by hand."""

import pytest

from ad4edu_train.data.rows import HumanPair, PreferencePair, Side
from ad4edu_train.report.compliance import agreement_cells, pairs_markdown
from ad4edu_train.scoring import Moment, score
from ad4edu_train.scoring.summary import ScoredPair, mean_by_cluster, stratum_row, summarize_pairs

# The three agreement tables of the data set card: stratum, pairs, moments, directed, ties, unscored, agree on decided, agree with ties = fail.
CARD = """
deixis | 219 | 114 | 219 | 25 | 0 | 82.5% [76.5, 87.2] (k=160, n=194) | 73.1% [66.8, 78.5] (k=160, n=219)
faithfulness | 145 | 93 | 145 | 28 | 0 | 90.6% [83.9, 94.7] (k=106, n=117) | 73.1% [65.4, 79.7] (k=106, n=145)
length | 191 | 117 | 191 | 2 | 0 | 88.9% [83.6, 92.6] (k=168, n=189) | 88.0% [82.6, 91.8] (k=168, n=191)
natural | 2501 | 759 | 2501 | 58 | 0 | 52.4% [50.5, 54.4] (k=1281, n=2443) | 51.2% [49.3, 53.2] (k=1281, n=2501)
non_redundancy | 170 | 106 | 170 | 17 | 0 | 43.8% [36.2, 51.7] (k=67, n=153) | 39.4% [32.4, 46.9] (k=67, n=170)
style | 149 | 92 | 149 | 4 | 0 | 82.8% [75.8, 88.0] (k=120, n=145) | 80.5% [73.4, 86.1] (k=120, n=149)
terminology | 165 | 99 | 165 | 100 | 0 | 50.8% [38.9, 62.5] (k=33, n=65) | 20.0% [14.6, 26.8] (k=33, n=165)
animation | 67 | 19 | 67 | 5 | 0 | 62.9% [50.5, 73.8] (k=39, n=62) | 58.2% [46.3, 69.3] (k=39, n=67)
chart | 17 | 4 | 17 | 0 | 0 | 47.1% [26.2, 69.0] (k=8, n=17) | 47.1% [26.2, 69.0] (k=8, n=17)
figure | 288 | 63 | 288 | 22 | 0 | 69.9% [64.2, 75.1] (k=186, n=266) | 64.6% [58.9, 69.9] (k=186, n=288)
ink | 32 | 6 | 32 | 3 | 0 | 41.4% [25.5, 59.3] (k=12, n=29) | 37.5% [22.9, 54.7] (k=12, n=32)
math | 36 | 15 | 36 | 0 | 0 | 44.4% [29.5, 60.4] (k=16, n=36) | 44.4% [29.5, 60.4] (k=16, n=36)
pointing | 2033 | 418 | 2033 | 165 | 0 | 59.8% [57.6, 62.0] (k=1117, n=1868) | 54.9% [52.8, 57.1] (k=1117, n=2033)
reveal | 183 | 62 | 183 | 3 | 0 | 40.6% [33.7, 47.9] (k=73, n=180) | 39.9% [33.1, 47.1] (k=73, n=183)
slide | 850 | 221 | 850 | 35 | 0 | 56.3% [52.9, 59.7] (k=459, n=815) | 54.0% [50.6, 57.3] (k=459, n=850)
table | 21 | 7 | 21 | 1 | 0 | 75.0% [53.1, 88.8] (k=15, n=20) | 71.4% [50.0, 86.2] (k=15, n=21)
transition | 13 | 2 | 13 | 0 | 0 | 76.9% [49.7, 91.8] (k=10, n=13) | 76.9% [49.7, 91.8] (k=10, n=13)
ALL | 3540 | 808 | 3540 | 234 | 0 | 58.5% [56.8, 60.2] (k=1935, n=3306) | 54.7% [53.0, 56.3] (k=1935, n=3540)
"""
ROWS = [tuple(cell.strip() for cell in line.split("|")) for line in CARD.strip().splitlines()]


@pytest.mark.parametrize("cells", ROWS, ids=lambda cells: cells[0])
def test_the_36_interval_cells_of_the_card_follow_from_their_counts(cells):
    names = ("pairs", "moments", "directed", "ties", "unscored")
    counts = dict(zip(names, map(int, cells[1:6]), strict=True))
    agree = int(cells[6].split("k=")[1].split(",")[0])
    assert agreement_cells({"stratum": cells[0], "agree": agree} | counts) == cells


MOMENT = Moment(
    moment_type="figure", transcript="x", ocr="Nephron Glomerulus Cortex Medulla", on_screen="A nephron.", pause_s=9.0
)
GOOD, BAD = "The glomerulus lies in the cortex.", "We see the glomerulus in the cortex"


def pair(number, first, second, *, winner="chosen", axis="style", kind="figure", moment="m", label="construction"):
    sides = [Side(user="p", ad=ad, model="f", rating=None, components=None) for ad in (first, second)]
    shared = {
        "pair_id": f"p{number}",
        "moment_id": moment,
        "lecture": "l",
        "type": kind,
        "axis": axis,
        "source": "s",
        "label_source": label,
    }
    shared |= {
        "cross_family": True,
        "what_differs": None,
        "prompt": "p",
        "prompt_id": "i",
        "first": sides[0],
        "second": sides[1],
    }
    if winner == "chosen":
        one = PreferencePair(**shared)
    else:
        votes = {"stratum": "controlled", "labels_pending": False, "raters": {}, "machine": {}, "machine_reasons": {}}
        one = HumanPair(**shared, **votes, human_winner=winner)
    return ScoredPair(one, score(first, MOMENT), score(second, MOMENT))


def test_the_higher_rating_wins_and_equal_ones_tie():
    rows = [pair(1, GOOD, BAD), pair(2, BAD, GOOD), pair(3, GOOD, GOOD, moment="n"), pair(4, GOOD, BAD, label=None)]
    expected = {"stratum": "x", "pairs": 4, "moments": 2, "directed": 3, "ties": 1, "unscored": 0, "agree": 1}
    assert stratum_row("x", rows) == expected


def test_a_human_pair_is_directed_by_its_winner():
    rows = [pair(1, GOOD, BAD, winner="option_b"), pair(2, BAD, GOOD, winner="option_b"), pair(3, GOOD, BAD, winner=None)]
    assert {name: stratum_row("x", rows)[name] for name in ("directed", "agree")} == {"directed": 2, "agree": 1}


def test_an_unscored_side_makes_the_pair_unscored_and_leaves_both_shares():
    from dataclasses import replace

    one = pair(1, GOOD, BAD)
    rows = [one, ScoredPair(one.pair, replace(one.first, rating=None), one.second)]
    row = stratum_row("x", rows)
    assert (row["directed"], row["unscored"], row["ties"]) == (2, 1, 0)
    assert agreement_cells(row)[-1].endswith("(k=1, n=1)")


def test_what_an_axis_moved_is_the_difference_of_components():
    summary = summarize_pairs([pair(1, GOOD, BAD), pair(2, GOOD, GOOD)], "mech")
    style = score(GOOD, MOMENT).components["style"] - score(BAD, MOMENT).components["style"]
    assert summary["moved"][0]["style"] == {"mean": style / 2, "moved": 1, "pairs": 2}
    assert summary["moved"][0]["faithfulness"] is None


def test_the_interval_of_a_mean_covers_whole_moments():
    """Twenty pairs of three moments that agree within a moment say as much as three."""
    values, moments = [0.0] * 7 + [0.5] * 7 + [1.0] * 7, [0] * 7 + [1] * 7 + [2] * 7
    clustered, single = mean_by_cluster(moments, values), mean_by_cluster(range(21), values)
    assert clustered.value == single.value == 0.5
    assert clustered.high - clustered.low > 2 * (single.high - single.low)


def test_critical_violations_stand_beside_the_mean():
    bad = "**The glomerulus** lies in the cortex."
    summary = summarize_pairs([pair(1, GOOD, bad)], "mech")
    shown = pairs_markdown(summary, synthetic=False, notes=[])
    assert [(row["critical"], row["critical_free"]) for row in summary["means"][:2]] == [(0, 1), (1, 0)]
    assert "critical-free" in shown
    assert "SYNTHETIC" not in shown
