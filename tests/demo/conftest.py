"""One written folder and its rows, shared by the tests of the demo corpus."""

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ad4edu_train.demo.moments import Settings
from ad4edu_train.demo.write import write_corpus


def jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@dataclass
class Written:
    path: Path
    train: list
    test: list
    candidates: list
    prompts: list


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "corpus"
    write_corpus(path, Settings(moments=24, seed=3))
    return Written(
        path,
        pq.read_table(path / "data/train_prefs-00000-of-00001.parquet").to_pylist(),
        pq.read_table(path / "data/test_human-00000-of-00001.parquet").to_pylist(),
        jsonl(path / "dpo_train.jsonl"),
        jsonl(path / "dpo_prompts.jsonl"),
    )
