"""A written folder against docs/data_contract.md."""

import hashlib
import json
import os
import re
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from ad4edu_train.demo.moments import Settings
from ad4edu_train.demo.write import write_corpus

SIDES = (("chosen", "rejected"), ("option_a", "option_b"))
RATERS = [f"rater_{k}" for k in (1, 2, 3, 4)]
FLAGS = {"train_eligible", "has_direction", "judge_flipped", "judge_tie", "judge_unparsed", "in_test_human"}


def jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def sides(row):
    return SIDES["option_a" in row]


def test_every_pair_is_a_turn_on_its_prompt_and_an_answer_that_differs(written):
    for row in written.train + written.test + written.candidates:
        first, second = (row[side] for side in sides(row))
        assert row["prompt_id"] == hashlib.sha256(row["prompt"].encode("utf-8")).hexdigest()
        for turns in (first, second):
            assert [turn["role"] for turn in turns] == ["user", "assistant"]
            assert turns[0]["content"] == row["prompt"]
            assert turns[1]["content"].strip()
        assert first[1]["content"] != second[1]["content"]


def test_prompts_have_the_five_fields_in_order(written):
    labels = ["Moment type", "Lecturer said", "On-screen text (OCR)", "What is on screen", "Pause available"]
    for row in written.prompts:
        text = row["messages"][1]["content"][-1]["text"]
        assert re.findall(r"^([A-Z][\w() -]+): ", text, re.M)[:2] == labels[:2]
        places = [text.index(f"{label}: ") for label in labels]
        assert places == sorted(places)
        assert re.search(r"\nPause available: \d+\.\d s$", text)


def test_prompts_keep_the_cards_length(written):
    lengths = [len(row["messages"][1]["content"][-1]["text"]) for row in written.prompts]
    assert 1700 <= sum(lengths) / len(lengths) <= 2200


def test_pair_ids_are_unique(written):
    for rows in (written.train, written.test, written.candidates):
        assert len({row["pair_id"] for row in rows}) == len(rows)


def test_human_winner_follows_from_the_rater_columns(written):
    for row in written.test:
        votes = [row[name] for name in RATERS if row[name] in ("option_a", "option_b")]
        a = votes.count("option_a")
        expected = None if 2 * a == len(votes) else ("option_a" if 2 * a > len(votes) else "option_b")
        assert row["human_winner"] == expected


def test_train_prefs_are_the_eligible_rows_of_dpo_train(written):
    eligible = [{k: v for k, v in row.items() if k not in FLAGS} for row in written.candidates if row["train_eligible"]]
    assert eligible == written.train
    assert len(written.candidates) > len(written.train) + len(written.test)


def test_ineligible_rows_say_why(written):
    for row in written.candidates:
        reasons = [row["judge_flipped"], row["judge_tie"], row["judge_unparsed"], row["in_test_human"]]
        assert row["train_eligible"] != any(reasons)
        assert row["has_direction"] == (row["label_source"] is not None)


def test_human_val_is_test_human(written):
    assert jsonl(written.path / "human_val_400.jsonl") == written.test


def test_splits_share_no_moment_prompt_or_description(written):
    for key in ("moment_id", "prompt_id"):
        assert not {row[key] for row in written.train} & {row[key] for row in written.test}
    texts = [{row[side][1]["content"] for row in rows for side in sides(row)} for rows in (written.train, written.test)]
    assert not texts[0] & texts[1]


def test_every_moment_has_one_chat_prompt_that_joins_on_prompt_id(written):
    moments = {row["moment_id"]: row["prompt_id"] for row in written.prompts}
    assert len(moments) == len(written.prompts)
    assert moments == {row["moment_id"]: row["prompt_id"] for row in written.candidates}


def test_keyframes_exist_and_open(written):
    for row in written.prompts:
        images = [part["image"] for part in row["messages"][1]["content"] if part["type"] == "image"]
        assert 1 <= len(images) <= 3
        for image in images:
            assert image.startswith(f"keyframes/{row['lecture']}/")
            with Image.open(written.path / image) as opened:
                opened.load()
                assert opened.size == (640, 360)


def test_lecture_files_cover_every_lecture_and_moments_are_in_order(written):
    lectures = {row["lecture"] for row in written.prompts}
    assert set(json.loads((written.path / "lecture_subjects.json").read_text())) == lectures
    assert set(json.loads((written.path / "analysis/cache/cursor_capability.json").read_text())) == lectures
    order = jsonl(written.path / "moment_order.jsonl")
    assert {row["moment_id"] for row in order} == {row["moment_id"] for row in written.prompts}
    assert len({(row["lecture"], row["time_s"]) for row in order}) == len(order)


def test_columns_that_are_null_keep_their_types(written):
    schema = pq.read_schema(written.path / "data/train_prefs-00000-of-00001.parquet")
    assert schema.field("chosen-rating").type == pa.float64()
    assert {field.type for field in schema.field("rejected-components").type} == {pa.float64()}
    assert schema.field("chosen-components").type.num_fields == 6


def test_test_human_direction_columns_follow_the_stratum(written):
    sources = {"controlled": "construction", "natural_decided": "judge", "natural_flip": None}
    assert all(row["label_source"] == sources[row["stratum"]] for row in written.test)
    assert all((row["what_differs"] is None) == (row["axis"] == "natural") for row in written.test)


def test_the_compliant_side_is_option_a_in_half_of_the_controlled_pairs(written):
    ordered = {row["pair_id"]: row["chosen"] for row in written.candidates}
    first = [row["option_a"] == ordered[row["pair_id"]] for row in written.test if row["stratum"] == "controlled"]
    assert abs(2 * sum(first) - len(first)) <= 1


def test_the_folder_says_that_it_is_synthetic(written):
    marker = json.loads((written.path / "SYNTHETIC.json").read_text())
    assert marker["synthetic"] is True
    assert (marker["seed"], marker["moments"], marker["null_labels"]) == (3, 24, False)
    assert "SYNTHETIC" in (written.path / "README.md").read_text()


def contents(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_same_seed_gives_the_same_bytes_in_another_process_and_another_seed_does_not(tmp_path):
    for name, seed, hashing in (("a", "1", "11"), ("b", "1", "12"), ("c", "2", "11")):
        command = [
            sys.executable,
            "-m",
            "ad4edu_train.demo",
            "write",
            str(tmp_path / name),
            "--moments",
            "8",
            "--seed",
            seed,
        ]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PYTHONHASHSEED": hashing})
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert a == b
    assert a["human_val_400.jsonl"] != c["human_val_400.jsonl"]


def test_writing_again_leaves_no_keyframe_of_the_old_seed(tmp_path):
    write_corpus(tmp_path / "fresh", Settings(moments=8, seed=2))
    for seed in (1, 2):
        write_corpus(tmp_path / "reused", Settings(moments=8, seed=seed))
    assert contents(tmp_path / "reused") == contents(tmp_path / "fresh")


@pytest.mark.parametrize("moments", [8, 24])
def test_null_labels_keep_every_text(moments, tmp_path):
    for name, null in (("real", False), ("null", True)):
        write_corpus(tmp_path / name, Settings(moments=moments, seed=3, null_labels=null))
    real, null = (jsonl(tmp_path / name / "dpo_train.jsonl") for name in ("real", "null"))
    swapped = 0
    for x, y in zip(real, null, strict=True):
        assert x["pair_id"] == y["pair_id"]
        assert {x["chosen"][1]["content"], x["rejected"][1]["content"]} == {
            y["chosen"][1]["content"],
            y["rejected"][1]["content"],
        }
        swapped += x["train_eligible"] and x["chosen"] != y["chosen"]
    assert 0.35 < swapped / sum(row["train_eligible"] for row in real) < 0.65
