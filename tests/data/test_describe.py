"""`python -m ad4edu_train.data describe` on both cards."""

import datetime
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ad4edu_train.data import card
from ad4edu_train.data.__main__ import main
from tests.data.conftest import human_row, prompt_text, train_row, write_folder, write_jsonl


@pytest.fixture
def described(capsys, monkeypatch):
    """described(*arguments) -> (exit status, printed text with white space folded)."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        try:
            status = main(["describe", *map(str, arguments)])
        except SystemExit as stopped:
            status = stopped.code
        shown = capsys.readouterr()
        return status, " ".join((shown.out + shown.err).replace("│", " ").split())

    return run


def test_tables_count_pairs_moments_and_lectures_by_subject(tmp_path, described):
    train = [
        train_row(0),
        train_row(1, moment_id="m-t-0", prompt=prompt_text(0)),
        train_row(2),
        train_row(3, lecture="lec-h-0", type="chart"),
    ]
    subjects = {"lec-t-0": "Biology", "lec-t-1": "Biology", "lec-t-2": "Anatomy", "lec-h-0": "Anatomy", "lec-h-1": "Biology"}
    status, text = described(write_folder(tmp_path / "c", train=train, test=[human_row(0), human_row(1)], subjects=subjects))
    assert status == 0
    assert "Anatomy 2 2 2 1 1 1" in text
    assert "Biology 2 1 2 1 1 1" in text
    assert "all 4 3 4 2 2 2" in text
    assert "chart 1 1 0 0" in text
    assert "Anatomy 1 1 0 0" in text  # its only test lecture is seen in train
    assert "rater_4 0 0 2 0" in text
    assert "TRAIN_OVERRIDE" in text
    assert "All checks passed" in text


def test_without_a_subject_map_every_subject_is_unknown(folder, described):
    _, text = described(folder)
    assert "unknown 3 4 4 3 3 3" in text
    assert "the card has no subject column" in text


def test_expect_card_names_each_figure_that_differs(folder, described):
    status, text = described(folder, "--expect-card")
    assert status == 1
    assert "train_prefs, all, pairs: card 3540, found 4" in text
    assert "test_human, stratum controlled, pairs: card 250, found 0" in text
    assert "label_source judge, pairs: card 2501, found 4" in text


def test_broken_rows_are_named_and_the_status_says_so(tmp_path, described):
    path = write_jsonl(tmp_path / "train.jsonl", [train_row(0), train_row(1, prompt_id="x")])
    status, text = described(path)
    assert status == 1
    assert "pair_id t-1 (row 2)" in text


def test_a_file_that_is_no_table_is_refused(tmp_path, described):
    status, text = described(write_jsonl(tmp_path / "x.jsonl", [{"a": 1}]))
    assert status == 2
    assert "no table of pairs" in text
    status, text = described(tmp_path / "nothing")
    assert status == 2
    assert "no such folder" in text


def test_card_figures_agree_with_each_other():
    for table, total in ((card.TRAIN_BY_SUBJECT, card.TRAIN_TOTAL), (card.TEST_BY_SUBJECT, card.TEST_TOTAL)):
        assert tuple(map(sum, zip(*table.values(), strict=True))) == total
    assert tuple(map(sum, zip(*card.BY_TYPE.values(), strict=True))) == (3540, 817, 400)
    assert sum(pairs for pairs, _ in card.BY_AXIS.values()) == sum(card.BY_LABEL_SOURCE.values()) == 3540
    assert card.BY_AXIS["natural"][0] == card.BY_LABEL_SOURCE["judge"]
    assert sum(card.BY_STRATUM.values()) == 400
    assert tuple(map(sum, zip(*card.DATASMITH_LANGUAGES.values(), strict=True))) == card.DATASMITH_TOTAL == (2295, 2317)
    assert sum(card.DATASMITH_SOURCES) == 2295


def datasmith(tmp_path, rows):
    turn = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    aspects = [f"preference_{name}" for name in
               ("naturalness", "cultural_appropriateness", "instruction_following", "coherence", "overall")]  # fmt: skip
    annotation = pa.struct(
        [("annotator_id", pa.string()), ("session_id", pa.string()), ("annotated_at", pa.timestamp("s")), ("duration_ms", pa.int64()),
         *((name, pa.string()) for name in aspects), ("comment", pa.string()), ("instance_feedback", pa.string())]
    )  # fmt: skip
    fields = [(name, pa.string()) for name in ("id", "language", "source", "source_id", "seed_prompt", "smith_id")]
    fields += [
        ("smith_messages", turn),
        ("teacher_id", pa.string()),
        ("teacher_messages", turn),
        ("annotations", pa.list_(annotation)),
    ]
    table = []
    for number, (language, source, preferences) in enumerate(rows):
        talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
        judged = [
            {"annotator_id": f"a{k}", "session_id": "s", "annotated_at": datetime.datetime(2026, 9, 7), "duration_ms": 60_000 * (k + 1),
             **dict.fromkeys(aspects, value), "comment": "", "instance_feedback": ""}
            for k, value in enumerate(preferences)
        ]  # fmt: skip
        table.append({"id": f"c{number}", "language": language, "source": source, "source_id": "", "seed_prompt": "", "smith_id": "",
                      "smith_messages": talk, "teacher_id": "", "teacher_messages": talk, "annotations": judged})  # fmt: skip
    path = tmp_path / "ds" / "data" / "train-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(table, pa.schema(fields)), path)
    return path


def test_datasmith_card_is_described_from_folder_and_file(tmp_path, described):
    rows = [("de", "Nemotron", ["smith"]), ("de", "Dolci", ["teacher", "tie_both_good"]), ("fr", "Nemotron", ["strong_smith"])]
    path = datasmith(tmp_path, rows)
    for source in (path, path.parent.parent):
        status, text = described(source, "--expect-card")
        assert status == 1
        assert "de 2 3" in text
        assert "all 3 4" in text
        assert "Nemotron 2" in text
        assert "Evaluators: 2. Median time a judgment: 1.0 min. Comparisons with more than one judgment: 1." in text
        assert "overall 1 1 1 0 1 0" in text
        assert "comparisons: card 2295, found 3" in text


def test_datasmith_preference_outside_the_card_is_named(tmp_path, described):
    status, text = described(datasmith(tmp_path, [("de", "Dolci", ["smith"]), ("de", "Dolci", ["neither"])]))
    assert status == 1
    assert "row 2" in text
    assert "'neither'" in text


def test_help_starts_without_heavy_imports():
    code = "import sys, runpy; sys.argv = ['x', '--help']\ntry: runpy.run_module('ad4edu_train.data', run_name='__main__')\n"
    code += "except SystemExit: print(sorted({'torch', 'pyarrow', 'pandas', 'numpy'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "describe" in shown
    assert shown.strip().endswith("[]")
