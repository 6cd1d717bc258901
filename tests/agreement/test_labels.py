"""Published label sets, rebuilt from their counts, give the right values; hand-made ones give hand-counted values."""

import json
import re
from pathlib import Path

import pytest

from ad4edu_train.agreement.labels import labels_result
from ad4edu_train.data.labels import LabelledPair, LabelSet, read_labels

METHOD = Path(__file__).parents[2] / "docs" / "method.md"
# PandaLM test set v1 (WeOpenML/PandaLM, Apache-2.0), counted: votes of the three annotators (0 a tie) -> verdicts of GPT-3.5 as
# 1, Tie, 2, garbage, and of PandaLM-7B as 1, 0, 2.
PANDALM = {
    "000": ("38 5 31 11", "28 28 29"),
    "001": ("0 0 2 0", "0 0 2"),
    "002": ("0 0 2 0", "1 0 1"),
    "020": ("0 0 4 0", "0 0 4"),
    "022": ("0 0 4 0", "2 0 2"),
    "100": ("2 0 1 2", "5 0 0"),
    "101": ("5 2 2 2", "7 1 3"),
    "110": ("8 0 2 0", "4 4 2"),
    "111": ("301 10 54 3", "269 34 65"),
    "112": ("3 1 6 0", "4 0 6"),
    "121": ("7 0 5 0", "8 0 4"),
    "122": ("3 2 6 0", "2 0 9"),
    "200": ("2 0 5 0", "1 4 2"),
    "202": ("1 0 3 0", "0 0 4"),
    "211": ("8 0 2 1", "6 1 4"),
    "212": ("4 0 14 0", "6 0 12"),
    "220": ("0 0 1 1", "0 1 1"),
    "221": ("2 0 5 0", "3 0 4"),
    "222": ("76 18 327 5", "87 34 305"),
}
# LLMBar Natural (princeton-nlp/LLMBar, MIT), counted: "label verdict verdict-with-sides-swapped" -> pairs.
LLMBAR = {
    "GPT-4": {"1 1 1": 39, "1 2 1": 1, "1 2 2": 2, "2 1 1": 3, "2 1 2": 2, "2 2 2": 53},
    "ChatGPT": {"1 1 1": 23, "1 1 2": 15, "1 2 1": 1, "1 2 2": 3, "2 1 1": 2, "2 1 2": 15, "2 2 1": 1, "2 2 2": 40},
    "ChatGPT rating": {"1 1 1": 20, "1 2 1": 18, "1 2 2": 4, "2 1 1": 4, "2 2 1": 29, "2 2 2": 25},
}


def expanded(counts, values):
    return [value for value, count in zip(values, map(int, counts.split()), strict=True) for _ in range(count)]


def documented(beginning):
    """The mapping that docs/method.md prints, so that what it says gives what it says."""
    blocks = re.findall(r"```yaml\n(.*?)```", METHOD.read_text(encoding="utf-8"), re.DOTALL)
    return next(block for block in blocks if block.startswith(f"# {beginning}"))


@pytest.fixture(scope="module")
def pandalm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pandalm")
    testset, gpt_rows, panda_rows = [], [], []
    for votes, (gpt, panda) in PANDALM.items():
        for one, other in zip(expanded(gpt, ["1", "Tie", "2", "garbage"]), expanded(panda, [1, 0, 2]), strict=True):
            idx = len(testset)
            texts = {"instruction": f"do {idx // 6}", "input": "", "response1": "a b", "response2": "c"}
            testset.append({"idx": idx, **texts, **{f"annotator{k}": int(vote) for k, vote in enumerate(votes, start=1)}})
            gpt_rows.append({"idx": idx, "gpt_result": one})
            panda_rows.append({"idx": idx, "pandalm_result": other})
    (folder / "testset-v1.json").write_text(json.dumps(testset, indent=4))
    (folder / "gpt-3.5-turbo-testset-v1.json").write_text(json.dumps(gpt_rows))
    (folder / "pandalm-7b-testset-v1.json").write_text(json.dumps(panda_rows[::-1]))
    (folder / "labels.yaml").write_text(documented("PandaLM"))
    return labels_result(read_labels(folder / "labels.yaml"), resamples=500)


def test_pandalm_raters(pandalm):
    assert pandalm["pairs"] == 999
    assert [round(pair["kappa"], 3) for pair in pandalm["rater_pairs"]] == [0.852, 0.879, 0.862]
    assert round(pandalm["coefficients"]["fleiss_kappa"]["value"], 5) == 0.86418
    assert round(pandalm["coefficients"]["alpha_nominal"]["value"], 5) == 0.86422
    assert pandalm["plurality"] == {"first": 422, "tie": 105, "second": 472, "none": 0}
    sides = pandalm["side_majority"]
    assert (sides["none"], sides["first"], sides["second"]) == (85, 429, 485)
    assert (sides["all_tie"], sides["even_split"], sides["no_vote"]) == (85, 0, 0)


def test_pandalm_judges(pandalm):
    for judge, right in (("GPT-3.5", 697), ("PandaLM-7B", 667)):
        share = pandalm["judges"][judge]["same_as_plurality"]
        assert (share["k"], share["n"]) == (right, 999)
        assert share["clustered"]["low"] < right / 999 < share["clustered"]["high"]
    assert [pandalm["judges"][judge]["agree"] for judge in ("GPT-3.5", "PandaLM-7B")] == [705, 647]
    assert pandalm["judges"]["GPT-3.5"]["directed"] == 914
    assert pandalm["votes"]["GPT-3.5"]["unparsed"] == 25


@pytest.mark.parametrize(
    ("judge", "right", "equal", "kappa"),
    [("GPT-4", (92, 95), 97, 0.837), ("ChatGPT", (79, 79), 68, 0.587), ("ChatGPT rating", (74, 63), 53, 0.433)],
)
def test_llmbar_judges_in_both_orders(tmp_path, judge, right, equal, kappa):
    """Label and verdict go through one vocabulary, so kappa cannot compare 0/1 with 1/2 as the published .252 does."""
    rows = []
    for cell, count in LLMBAR[judge].items():
        label, given, swapped = cell.split()
        rows += [
            {"label": int(label), "results": [{"swap = False": {"winner": given}, "swap = True": {"winner": swapped}}]}
        ] * count
    (tmp_path / "LLMBar_Natural__GPT-4_Vanilla_NoRules__result.json").write_text(json.dumps(rows))
    (tmp_path / "labels.yaml").write_text(documented("LLMBar"))
    result = labels_result(read_labels(tmp_path / "labels.yaml"))
    given, swapped = result["judges"]["GPT-4"], result["judges"]["GPT-4 (sides swapped)"]
    assert (given["agree"], swapped["agree"], given["directed"]) == (*right, 100)
    both = result["both_orders"]["GPT-4"]
    assert (both["equal"]["k"], both["reversed"]["k"], both["equal"]["n"]) == (equal, 100 - equal, 100)
    assert round(given["kappa_with_plurality"], 3) == kappa
    assert result["rater_pairs"] == []
    assert result["coefficients"] == {}
    json.dumps(result, allow_nan=False)


def label_set(votes, texts=None, judges=()):
    """votes: one tuple a pair, raters first and then judges."""
    raters = [f"r{number}" for number in range(len(votes[0]) - len(judges))]
    pairs = [
        LabelledPair(
            pair_id=str(number),
            cluster=str(number // 2),
            first=texts[number][0] if texts else None,
            second=texts[number][1] if texts else None,
            votes=dict(zip((*raters, *judges), row, strict=True)),
        )
        for number, row in enumerate(votes)
    ]
    return LabelSet(pairs=pairs, raters=raters, judges=list(judges), swapped=[], digests={})


def test_three_readings_by_hand():
    votes = [
        ("first", "first", "tie", "first"),
        ("first", "tie", "tie", "tie"),
        ("second", "second", "second", "first"),
        ("tie", "tie", "tie", "tie"),
        ("first", "second", "tie", "second"),
        ("second", "second", None, "unparsed"),
    ]
    result = labels_result(
        label_set(votes, judges=["j"]), {"p": {"0": 1.0, "1": float("nan"), "2": -2.0, "5": 0.0}}, resamples=200
    )
    judge = result["judges"]["j"]
    assert [(judge[name]["k"], judge[name]["n"]) for name in ("decided_only", "ties_fail", "half_credit")] == [
        (1, 2),
        (1, 4),
        (1.5, 4),
    ]
    assert (judge["ties"], judge["abstained"]) == (1, 1)
    # Plurality: first, tie, second, tie, none, second.
    assert (judge["same_as_plurality"]["k"], judge["same_as_plurality"]["n"]) == (3, 5)
    predictor = result["judges"]["p"]
    assert (predictor["agree"], predictor["ties"], predictor["abstained"], predictor["directed"]) == (2, 1, 1, 4)
    assert result["side_majority"] == {
        "first": 2,
        "tie": 0,
        "second": 2,
        "none": 2,
        "all_tie": 1,
        "even_split": 1,
        "no_vote": 0,
    }
    assert result["votes"]["r2"] == {"first": 0, "tie": 4, "second": 1, "unparsed": 0, "missing": 1}


def test_length_is_a_control_where_texts_are_given():
    votes = [("first", "first"), ("second", "second"), ("first", "second")]
    texts = [("a b c", "a"), ("a b", "a"), ("a", "b")]
    result = labels_result(label_set(votes, texts), resamples=200)
    assert (result["judges"]["longer side"]["agree"], result["judges"]["longer side"]["directed"]) == (1, 2)
    assert (result["longer_side"]["r0"]["k"], result["longer_side"]["r0"]["n"]) == (1, 2)
    assert (result["first_side"]["r0"]["k"], result["first_side"]["r0"]["n"]) == (2, 3)
    assert labels_result(label_set(votes), resamples=200)["longer_side"] == {}


@pytest.mark.parametrize(
    "votes",
    [
        [("first",)],
        [(None, None)],
        [("tie", "tie", "tie")] * 4,
        [("first", "first", "first")] * 30,
        [("first", "second")] * 5,
        [("unparsed", None, "tie")],
    ],
)
def test_edges_give_json_without_nan(votes):
    result = labels_result(label_set(votes), resamples=100)
    json.dumps(result, allow_nan=False)
    assert result["pairs"] == len(votes)
