"""`eval/adedueval.py` as it is typed: the card's command lines, tables, and the check of shipped ratings."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ad4edu_train.scoring import score
from tests.conftest import ROOT, read_jsonl

SCRIPT = ROOT / "eval/adedueval.py"
TRAIN = "data/train_prefs-00000-of-00001.parquet"
TEST = "data/test_human-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("adedueval", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def command(script, capsys):
    """command(*arguments) -> (exit status, standard output, standard error)."""

    def run(*arguments):
        from ad4edu_train.errors import plain_errors

        status = 0
        try:
            with plain_errors():
                script.main([str(one) for one in arguments])
        except SystemExit as error:
            status = error.code
        out, err = capsys.readouterr()
        return status, out, err

    return run


CARD_LINES = (
    "hf --repo Psychias/AD4Edu-Preferences --config default --check-shipped",
    "hf --repo Psychias/AD4Edu-Preferences --config test_human --check-shipped",
    "pairs --pairs data/train_prefs-00000-of-00001.parquet --out sides.jsonl --md summary.md",
    "--tier local pairs --pairs data/train_prefs-00000-of-00001.parquet",
)


@pytest.mark.parametrize("line", CARD_LINES)
def test_the_cards_command_lines_parse_as_they_stand(script, line):
    given = script.arguments(line.split())
    assert given.command == ("hf" if line.startswith("hf") else "pairs")
    assert given.shipped == ("check" if "--check-shipped" in line else None)


def test_tier_and_approval_stand_before_or_after_the_subcommand(script):
    before = script.arguments(["--tier", "rubric", "--i-approve-spend", "pairs", "--pairs", "x"])
    after = script.arguments(["pairs", "--pairs", "x", "--tier", "rubric", "--i-approve-spend"])
    assert (before.tier, before.i_approve_spend) == (after.tier, after.i_approve_spend) == ("rubric", True)


def test_check_shipped_passes_on_the_demo_corpus(command, demo_folder):
    for arguments in (
        ("hf", "--repo", demo_folder),
        ("hf", "--repo", demo_folder, "--config", "test_human"),
        ("pairs", "--pairs", demo_folder / TRAIN),
    ):
        status, out, err = command(*arguments, "--check-shipped")
        assert (status, err) == (0, "")
        assert "Every shipped rating and component" in out


@pytest.mark.parametrize("column", ["chosen-rating", "rejected-components"])
def test_check_shipped_refuses_after_one_changed_value(command, demo_folder, tmp_path, column):
    table = pq.read_table(demo_folder / TRAIN)
    rows = table.to_pylist()
    if column == "chosen-rating":
        rows[3][column] = round(rows[3][column] - 0.000002, 6) if rows[3][column] else 0.000002
    else:
        rows[3][column]["style"] = 0.123
    path = tmp_path / "data" / Path(TRAIN).name
    path.parent.mkdir()
    (tmp_path / "cursor_capability.json").write_bytes((demo_folder / "analysis/cache/cursor_capability.json").read_bytes())
    pq.write_table(table.from_pylist(rows, table.schema), path)
    status, _, err = command("pairs", "--pairs", path, "--check-shipped")
    assert status == 2
    assert f"1 shipped values of 1 of {len(rows)} pairs" in err
    assert rows[3]["pair_id"] in err
    assert "--compare-shipped" in err


def test_ratings_of_another_scorer_are_named_and_can_be_compared(command, demo_folder, tmp_path):
    table = pq.read_table(demo_folder / TRAIN)
    path = tmp_path / "train_prefs-00000-of-00001.parquet"
    pq.write_table(table.replace_schema_metadata({"scorer_id": "ad4edu/9.9/mech"}), path)
    cursor = demo_folder / "analysis/cache/cursor_capability.json"
    status, _, err = command("pairs", "--pairs", path, "--check-shipped", "--cursor-capability", cursor)
    assert status == 2
    assert "ad4edu/9.9/mech" in err
    assert "--compare-shipped" in err
    status, out, _ = command("pairs", "--pairs", path, "--compare-shipped", "--cursor-capability", cursor)
    assert status == 0
    assert "Shipped by: ad4edu/9.9/mech" in out
    assert re.search(r"\| rating \| \d+ \| 1\.000 \|", out)


def test_check_shipped_is_for_the_tier_that_ships(command, demo_folder):
    status, _, err = command("--tier", "local", "hf", "--repo", demo_folder, "--check-shipped")
    assert status == 2
    assert "mechanical tier" in err


def test_pairs_write_one_row_a_side_and_strata_before_the_aggregate(command, demo_folder, tmp_path):
    out, md, values = tmp_path / "sides.jsonl", tmp_path / "summary.md", tmp_path / "summary.json"
    status, shown, _ = command("pairs", "--pairs", demo_folder / TRAIN, "--out", out, "--md", md, "--json", values)
    rows, text = read_jsonl(out), md.read_text()
    pairs = pq.read_table(demo_folder / TRAIN).to_pylist()
    assert status == 0
    assert len(rows) == 2 * len(pairs)
    assert {row["side"] for row in rows} == {"chosen", "rejected"}
    assert rows[0]["rating"] == pairs[0]["chosen-rating"]
    assert shown.strip() == text.strip()
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert headings[:2] == ["By axis (strata first)", "By type (strata first)"]
    assert headings[2].startswith("Aggregate, pooling axes ['deixis', 'faithfulness', 'length', 'natural'")
    assert "| stratum | pairs | moments | directed | ties | unscored | agree on decided | agree, ties = fail |" in text
    for sentence in ("Compliance is not quality", "SYNTHETIC", "classified on slide stills"):
        assert sentence in text
    summary = json.loads(values.read_text())
    assert sum(row["pairs"] for row in summary["by_axis"]) == summary["all"]["pairs"] == len(pairs)


def test_jsonl_and_parquet_give_the_same_summary(command, demo_folder):
    parquet, jsonl = (command("pairs", "--pairs", demo_folder / name)[1] for name in (TEST, "human_val_400.jsonl"))
    assert parquet == jsonl


def test_a_table_without_pairs_is_refused_by_name(command, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "a"}\n')
    status, _, err = command("pairs", "--pairs", path)
    assert status == 2
    assert "neither the columns chosen and rejected nor option_a and option_b" in err


def test_the_rubric_tier_is_refused_before_any_key_import_or_socket(demo_folder, tmp_path):
    """In a process of its own: no HTTP library is imported, the key is not read, and no socket is made."""
    code = f"""
import os, socket, sys
class Spy(dict):
    def __getitem__(self, name):
        assert name != "OPENAI_API_KEY", "the key was read"
        return dict.__getitem__(self, name)
    def get(self, name, default=None):
        assert name != "OPENAI_API_KEY", "the key was read"
        return dict.get(self, name, default)
class Refused(socket.socket):
    def __init__(self, *_, **__):
        raise AssertionError("a socket was made")
os.environ = Spy(os.environ)
socket.socket = Refused
sys.argv = ["adedueval.py", "pairs", "--pairs", {str(demo_folder / TRAIN)!r}, "--tier", "rubric"]
import runpy
try:
    runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
except SystemExit as error:
    assert error.code == 2
libraries = [name for name in sys.modules if name.split(".")[0] in ("httpx", "httpx2", "openai", "torch")]
assert not libraries, libraries
assert "ad4edu_train.scoring.rubric" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--i-approve-spend" in done.stderr


def test_the_mechanical_tier_imports_no_torch_and_makes_no_socket(demo_folder):
    code = f"""
import socket, sys
class Refused(socket.socket):
    def __init__(self, *_, **__):
        raise AssertionError("a socket was made")
socket.socket = Refused
sys.argv = ["adedueval.py", "pairs", "--pairs", {str(demo_folder / TRAIN)!r}]
import runpy
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
assert not {{"torch", "transformers", "datasets"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_explain_underlines_the_span(command):
    status, out, _ = command(
        "explain", "As you can see, the valve opens.", "--ocr", "Mitral valve Aorta Atrium", "--moment-type", "figure"
    )
    lines = out.splitlines()
    k = next(number for number, line in enumerate(lines) if line.startswith("S01"))
    assert status == 0
    assert lines[k + 2][lines[k + 1].index("you can see") :].startswith("^" * len("you can see"))
    assert "Compliance is not quality" in out


def test_explain_reads_rows_and_prints_one_json_row_each(command, tmp_path):
    context = {
        "moment_type": "pointing",
        "transcript": "this one here",
        "ocr": "Mitral valve Aorta Atrium",
        "on_screen": "",
        "pause_s": 4,
    }
    texts = ["The cursor rests on the mitral valve.", "As you can see, it opens.", "", "\ud83d", "\u202e"]
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps({"text": text, "context": context}) for text in texts]
    path.write_text("\n".join([*lines, "not json", '["list"]', '{"context": 3}', ""]) + "\n")
    status, out, _ = command("explain", "--jsonl", path)
    rows = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert len(rows) == 8
    for text, row in zip(texts, rows, strict=False):
        result = score(text, context)
        assert row["rating"] == result.rating
        assert row["components"] == result.components
        assert row["findings"] == [{"rule": f.rule, "start": f.start, "end": f.end, "cost": f.cost} for f in result.findings]
    assert "not JSON" in rows[5]["error"]
    assert "no object" in rows[6]["error"]
    assert rows[7]["rating"] == 0.0


def test_explain_takes_a_text_or_a_file(command):
    for arguments in (("explain",), ("explain", "x", "--jsonl", "y")):
        status, _, err = command(*arguments)
        assert status == 2
        assert "explain --jsonl FILE" in err


def test_explain_starts_within_a_second():
    """CPU seconds of the process: on a crowded machine the clock would tell of its neighbours."""
    seconds = []
    for _ in range(3):
        before = os.times()
        subprocess.run([sys.executable, SCRIPT, "explain", "The cursor rests on the valve."], check=True, capture_output=True)
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(seconds) < 1.0
