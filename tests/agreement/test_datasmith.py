"""The second card's statistics, recounted from the raw rows of the synthetic set, and small sets counted by hand."""

import json
from statistics import median

import pyarrow.parquet as pq
import pytest
from statsmodels.stats.proportion import proportion_confint

from ad4edu_train.agreement.datasmith import datasmith_result
from ad4edu_train.data.datasmith import ASPECTS, comparison, read_comparisons
from ad4edu_train.data.problems import Problems
from ad4edu_train.demo.datasmith import write_datasmith


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ds") / "set"
    write_datasmith(folder, 3)
    return folder / "data/train-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def rows(raw):
    return pq.read_table(raw).to_pylist()


@pytest.fixture(scope="module")
def result(raw):
    problems = Problems()
    found = datasmith_result([row for *_, row in read_comparisons([raw], problems)], synthetic=True)
    assert not problems
    return found


def judgments(rows, aspect="overall", **where):
    members = [row for row in rows if all(row[name] == value for name, value in where.items())]
    return [annotation[f"preference_{aspect}"] for row in members for annotation in row["annotations"]]


def k_n(share):
    return share["k"], share["n"]


def check_win_rate(found, values):
    wins, losses = (sum(value in (side, f"strong_{side}") for value in values) for side in ("smith", "teacher"))
    assert k_n(found["decided_only"]) == (wins, wins + losses)
    # The card's own line of code.
    assert k_n(found["ties_in_denominator"]) == (sum(1 for value in values if value.endswith("smith")), len(values))
    assert k_n(found["half_credit"]) == (wins + 0.5 * sum(value.startswith("tie") for value in values), len(values))
    strong = [value for value in values if value.startswith("strong")]
    assert k_n(found["strong_only"]) == (strong.count("strong_smith"), len(strong))
    assert k_n(found["plain_only"]) == (values.count("smith"), values.count("smith") + values.count("teacher"))
    assert found["values"] == {value: values.count(value) for value in found["values"]}
    assert sum(found["values"].values()) == len(values)
    low, high = proportion_confint(wins, wins + losses, method="wilson")
    pair_level = found["decided_only"]["pair_level"]
    assert (pair_level["low"], pair_level["high"]) == pytest.approx((low, high))


def test_win_rates_are_a_recount(rows, result):
    by_stratum = {(row["stratum"], row["aspect"]): row for row in result["win_rates"]}
    assert len(by_stratum) == len(result["win_rates"]) == 11 + 2 + 5
    for (stratum, aspect), found in by_stratum.items():
        column, _, value = stratum.partition(": ")
        check_win_rate(found, judgments(rows, aspect, **({column: value} if value else {})))
    assert result["win_rates"][-1]["stratum"] == "all"


def test_intervals_follow_the_design(result):
    german = next(row for row in result["win_rates"] if row["stratum"] == "language: de")
    assert (german["comparisons"], german["judgments"]) == (236, 239)
    assert not any("evaluators" in name for name in german if name != "evaluators")
    overall = result["win_rates"][-1]
    assert overall["decided_by_evaluators"]["clustered"]["clusters"] == 24
    assert overall["decided_by_languages"]["clustered"]["note"] == "small, worst-case ICC"
    assert overall["decided_only"]["clustered"]["clusters"] <= 2295
    assert "not available" in result["first_side"]


def test_aspects_times_and_remarks_are_a_recount(rows, result):
    annotations = [(row, annotation) for row in rows for annotation in row["annotations"]]

    def side(value):
        return value.rpartition("_")[2] if "tie" not in value else "tie"

    for aspect in ASPECTS[:-1]:
        pairs = [(side(one[f"preference_{aspect}"]), side(one["preference_overall"])) for _, one in annotations]
        found = result["aspects_against_overall"][aspect]
        decided = [pair for pair in pairs if "tie" not in pair]
        assert k_n(found["same_choice"]) == (sum(a == b for a, b in pairs), len(pairs))
        assert k_n(found["same_side_where_both_decided"]) == (sum(a == b for a, b in decided), len(decided))
        assert found["aspect_by_overall"]["tie"]["teacher"] == pairs.count(("tie", "teacher"))
    assert result["minutes"]["all"] == median(one["duration_ms"] for _, one in annotations) / 60_000
    assert round(result["minutes"]["all"], 1) == 4.2
    assert len(result["minutes"]) == 14
    assert len(result["remarks"]) == sum(bool(one["comment"] or one["instance_feedback"]) for _, one in annotations)


def test_second_judgments_come_with_their_n(rows, result):
    several = [row["annotations"] for row in rows if len(row["annotations"]) > 1]
    found = result["second_judgments"]
    assert (found["comparisons"], found["pairs_of_judgments"], found["both_voted"]) == (22, 22, 22)
    values = [[one["preference_overall"].removeprefix("strong_") for one in pair] for pair in several]
    decided = [pair for pair in values if "tie" not in pair[0] + pair[1]]
    assert (found["both_decided"], found["same_side"]) == (len(decided), sum(a == b for a, b in decided))


def row(name, *preferences, language="de", smith="abc", teacher="ab"):
    talk = [[{"role": "user", "content": "x"}, {"role": "assistant", "content": text}] for text in (smith, teacher)]
    judged = [
        {
            "annotator_id": f"{language}{number}",
            "session_id": "s",
            "duration_ms": 60_000,
            "comment": None,
            "instance_feedback": None,
        }
        | {f"preference_{aspect}": value for aspect in ASPECTS}
        for number, value in enumerate(preferences)
    ]
    return comparison(
        {
            "id": name,
            "language": language,
            "source": "S",
            "smith_messages": talk[0],
            "teacher_messages": talk[1],
            "annotations": judged,
        }
    )


def test_predictors_meet_the_majority_of_judgments():
    rows = [
        row("a", "smith"),
        row("b", "strong_teacher", language="fr"),
        row("c", "smith", "teacher"),
        row("d", "tie_both_bad", "teacher", teacher="abc"),
        row("e", "tie_both_good"),
    ]
    result = datasmith_result(rows, {"mine": {"a": 2.0, "b": -1.0, "c": 1.0, "d": 0.0, "e": 5.0}})
    found = {one["predictor"]: one for one in result["predictors"] if one["stratum"] == "all"}
    mine = found["mine"]
    assert (mine["pairs"], mine["directed"], mine["agree"], mine["ties"], mine["abstained"]) == (5, 3, 2, 1, 0)
    assert k_n(mine["half_credit"]) == (2.5, 3)
    longer = found["longer conversation"]
    assert (longer["agree"], longer["disagree"], longer["ties"]) == (1, 1, 1)
    assert (found["always DataSmith"]["agree"], found["always DataSmith"]["directed"]) == (1, 3)
    french = [one for one in result["predictors"] if one["stratum"] == "language: fr" and one["predictor"] == "mine"]
    assert (french[0]["pairs"], french[0]["agree"]) == (1, 1)
    assert [one["stratum"] for one in result["predictors"]][-1] == "all"


@pytest.mark.parametrize("rows", [[], [row("a", "tie_both_good")], [row("a", "smith"), row("b", "smith", language="fr")]])
def test_edges_give_json_without_nan(rows):
    json.dumps(datasmith_result(rows), allow_nan=False)
