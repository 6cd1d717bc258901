"""A system's predictions: joined to moments, ordered by lecture time, with coverage and the strict mean."""

import json

import pytest

from ad4edu_train.errors import DataError, UserError
from ad4edu_train.scoring import score_sequence
from ad4edu_train.scoring.commands import Output, score_predictions
from ad4edu_train.scoring.sources import Contexts
from ad4edu_train.scoring.standard import load_standard
from ad4edu_train.scoring.tiers import Tier
from tests.conftest import read_jsonl

TEXTS = {
    "a1": "The glomerulus lies in the cortex.",
    "a2": "The glomerulus lies in the cortex.",
    "a3": "Filtrate enters the proximal tubule.",
    "b1": "The glomerulus lies in the cortex.",
}


def prompt_row(moment):
    text = (
        f"Moment type: figure\nLecturer said: x {moment}\nOn-screen text (OCR): Nephron Glomerulus Cortex "
        f"Proximal tubule Filtrate\nWhat is on screen: A nephron.\nPause available: 9 s"
    )
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    return {
        "prompt_id": f"p-{moment}",
        "moment_id": moment,
        "lecture": moment[0],
        "type": "figure" if moment != "a3" else "slide",
        "messages": messages,
    }


@pytest.fixture
def run(tmp_path):
    """run(samples, order=..., prompts=...) -> (summary, one row a description, Markdown)."""

    def scored(samples, order=("a1", "a2", "a3", "b1"), prompts=("a1", "a2", "a3", "b1")):
        from ad4edu_train.data.sources import locate

        def write(name, rows):
            (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
            return str(tmp_path / name)

        times = [{"moment_id": moment, "lecture": moment[0], "time_s": 10 * k} for k, moment in enumerate(order)]
        sources = {"prompts": write("dpo_prompts.jsonl", map(prompt_row, prompts))} | (
            {"moment_order": write("moment_order.jsonl", times)} if times else {}
        )
        path = tmp_path / "samples.jsonl"
        write("samples.jsonl", samples)
        out, values = tmp_path / "out.jsonl", tmp_path / "summary.json"
        shown = score_predictions(
            path, locate(None, sources), Tier(), load_standard(), Output(out=out, json=values), context=Contexts()
        )
        return json.loads(values.read_text()), read_jsonl(out), shown

    return scored


def samples(*moments, index=0):
    return [
        {"moment_id": moment, "prompt_id": f"p-{moment}", "sample_index": index, "text": TEXTS[moment]} for moment in moments
    ]


def test_novelty_follows_the_lecture_order_whatever_the_order_of_the_file(run):
    _, rows, _ = run(samples("a3", "a2", "a1", "b1"))
    assert {row["moment_id"]: row["novelty"] for row in rows} == {"a1": 1.0, "a2": 0.0, "a3": 1.0, "b1": 1.0}
    _, rows, _ = run(samples("a1", "a2"), order=("a2", "a1"))
    assert {row["moment_id"]: row["novelty"] for row in rows} == {"a1": 0.0, "a2": 1.0}


def test_each_sample_index_is_its_own_sequence(run):
    summary, rows, _ = run([*samples("a1"), *samples("a1", index=1), *samples("a2", index=1)])
    assert {(row["sample_index"], row["moment_id"]): row["novelty"] for row in rows} == {
        (0, "a1"): 1.0,
        (1, "a1"): 1.0,
        (1, "a2"): 0.0,
    }
    assert summary["samples"] == [0, 1]
    assert summary["all"]["prompts"] == 8


def test_missing_predictions_lower_coverage_and_the_strict_mean_counts_them_as_zero(run):
    summary, _, shown = run(samples("a1", "a3"))
    whole = summary["all"]
    mean = whole["score"]["value"]
    assert (whole["prompts"], whole["described"]) == (4, 2)
    assert whole["strict"]["value"] == pytest.approx(mean / 2)
    assert "50.0% [15.0, 85.0] (k=2, n=4)" in shown
    assert "sparse subset" in shown


def test_declined_moments_are_counted_apart(run):
    declined = [{"moment_id": "a1", "text": "No description needed."}]
    summary, _, _ = run([*declined, *samples("a2", "a3", "b1")])
    assert summary["all"]["declined"] == 1
    assert summary["all"]["score"] == summary["all"]["strict"]


def test_strata_come_before_the_aggregate_whose_title_names_what_it_pools(run):
    summary, _, shown = run(samples("a1", "a2", "a3", "b1"))
    assert [row["stratum"] for row in summary["by_type"]] == ["figure", "slide"]
    assert shown.index("By type (strata first)") < shown.index("Aggregate, pooling types ['figure', 'slide']")
    results = score_sequence([TEXTS[name] for name in ("a1", "a2", "a3")], [None] * 3)
    assert [one.novelty for one in results] == [1.0, 0.0, 1.0]


def test_the_moment_order_is_needed(run):
    with pytest.raises(UserError, match="--moment-order"):
        run(samples("a1"), order=())
    with pytest.raises(DataError, match="1 of 2 predictions have no place in the moment order: a2"):
        run(samples("a1", "a2"), order=("a1",))


def test_duplicates_are_refused(run):
    with pytest.raises(DataError, match="has this sample_index already"):
        run([*samples("a1"), *samples("a1")])
    by_either_id = [{"moment_id": "a1", "text": "x"}, {"prompt_id": "p-a1", "text": "y"}]
    with pytest.raises(DataError, match="describes a moment twice: a1"):
        run(by_either_id)


def test_predictions_of_unknown_moments_are_refused(run):
    with pytest.raises(DataError, match="1 of 1 predictions are of no moment of the prompts: a1"):
        run(samples("a1"), prompts=("a2",))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "x"}, "neither prompt_id nor moment_id"),
        ({"moment_id": "a1", "text": 3}, "text is 3"),
        ({"moment_id": "a1", "sample_index": -1}, "sample_index is -1"),
    ],
)
def test_rows_that_are_no_predictions_are_refused(run, row, message):
    with pytest.raises(DataError, match=message):
        run([row])


def test_an_empty_description_scores_zero_and_is_not_missing(run):
    summary, rows, _ = run([{"moment_id": "a1", "text": ""}, *samples("a3")])
    assert rows[0]["system_score"] == 0.0
    assert summary["all"]["described"] == 2
