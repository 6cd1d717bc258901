"""The synthetic DataSmith set: the card's counts, by the reader's own check, and what a folder may hold."""

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest

from ad4edu_train.data.__main__ import main as data_main
from ad4edu_train.demo.__main__ import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "datasmith"
    assert main(["write-datasmith", str(path)]) == 0
    return path


def test_every_figure_of_the_card_is_met(folder, capsys):
    assert data_main(["describe", str(folder), "--expect-card"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("SYNTHETIC DATA")
    assert "Every figure of the card is met." in text


def test_rows_are_marked_synthetic_and_evaluators_keep_to_a_language(folder):
    rows = pq.read_table(folder / "data/train-00000-of-00001.parquet").to_pylist()
    assert (len(rows), sum(len(row["annotations"]) for row in rows)) == (2295, 2317)
    assert sorted(Counter(row["source"] for row in rows).values()) == [741, 1554]
    languages = {}
    for row in rows:
        assert row["seed_prompt"].startswith("SYNTHETIC")
        names = [annotation["annotator_id"] for annotation in row["annotations"]]
        assert len(set(names)) == len(names)
        for annotation in row["annotations"]:
            languages.setdefault(annotation["annotator_id"], set()).add(row["language"])
            assert not annotation["comment"] or annotation["comment"].startswith("Synthetic")
            assert "2026-09-07" <= annotation["annotated_at"].isoformat() < "2026-09-26"
    assert len(languages) == 24
    assert all(len(of_one) == 1 for of_one in languages.values())
    assert json.loads((folder / "SYNTHETIC.json").read_text())["synthetic"] is True


def test_a_seed_gives_the_same_bytes(folder, tmp_path):
    main(["write-datasmith", str(tmp_path / "again")])
    main(["write-datasmith", str(tmp_path / "other"), "--seed", "1"])
    name = "data/train-00000-of-00001.parquet"
    assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
    assert (tmp_path / "other" / name).read_bytes() != (folder / name).read_bytes()


@pytest.mark.parametrize(("file", "text"), [("thesis.txt", "mine"), ("SYNTHETIC.json", '{"generator": "ad4edu_train.demo"}')])
def test_other_folders_are_refused_and_kept(tmp_path, capsys, file, text):
    (tmp_path / file).write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["write-datasmith", str(tmp_path)])
    assert stop.value.code == 2
    assert "folder" in capsys.readouterr().err
    assert (tmp_path / file).read_text() == text
    assert not (tmp_path / "data").exists()
