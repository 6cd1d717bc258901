"""Folders, single files and hub repositories give the same rows; what is not there is said."""

import subprocess
import sys

import pytest

from ad4edu_train.data.sources import locate
from ad4edu_train.errors import DataError

REPO = "someone/AD4Edu-Preferences"


def test_a_folder_is_found_file_by_file(folder):
    files = locate(str(folder), {})
    assert {name: len(paths) for name, paths in files.files.items()} == {
        "train": 1, "test_human": 1, "candidates": 1, "prompts": 1, "human_val": 1,
    }  # fmt: skip
    assert files.keyframes == folder
    assert not files.synthetic


def test_a_single_file_takes_the_place_of_the_roots(folder, tmp_path):
    other = tmp_path / "mine.jsonl"
    other.write_text("")
    assert locate(str(folder), {"train": str(other)})["train"] == [other]


def test_the_mark_of_synthetic_data_is_seen(folder):
    (folder / "SYNTHETIC.json").write_text("{}")
    assert locate(str(folder), {}).synthetic
    assert locate(None, {"train": str(folder / "data" / "train_prefs-00000-of-00001.parquet")}).synthetic


def in_cache(folder, tmp_path, code):
    """Run code with a hub cache that holds the folder as a downloaded data set, offline."""
    snapshot = tmp_path / "hub" / f"datasets--{REPO.replace('/', '--')}" / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(folder)
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text("0" * 40)
    environment = {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1", "PATH": "", "HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_hub_id_is_read_from_the_cache_when_offline(folder, tmp_path):
    code = f"from ad4edu_train.data.__main__ import main; raise SystemExit(main(['describe', '{REPO}']))"
    run = in_cache(folder, tmp_path, code)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "All checks passed" in run.stdout


def test_a_hub_id_that_is_not_cached_says_what_to_do(folder, tmp_path):
    code = "from ad4edu_train.data.__main__ import main; raise SystemExit(main(['describe', 'someone/else']))"
    run = in_cache(folder, tmp_path, code)
    assert run.returncode == 2
    assert "HF_HUB_OFFLINE is set, and the data set is not in the local cache" in run.stderr
    assert "hf download --repo-type dataset someone/else" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("source", ["/nowhere", "./nowhere", "a/b/c", "plain"])
def test_a_path_that_is_not_there_is_no_hub_id(source):
    with pytest.raises(DataError, match="no such folder"):
        locate(source, {})


def test_an_override_without_its_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"gold_eval\.jsonl"):
        locate(None, {"gold": str(tmp_path)})
