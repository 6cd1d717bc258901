"""Tiny rows and files of the data contract, built here from nothing: no code of the package makes them."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TURNS = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
SCORES = pa.struct(
    [(name, pa.float64()) for name in ("style", "terminology", "length", "deixis", "faithfulness", "non_redundancy")]
)
TRAIN, TEST = "data/train_prefs-00000-of-00001.parquet", "data/test_human-00000-of-00001.parquet"


def sha(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def prompt_text(n, split="t"):
    return f"Moment type: slide\nLecturer said: item {split}{n}\nOn-screen text (OCR): x\nWhat is on screen: y\nPause available: 3 s"


def turns(prompt, ad):
    return [{"role": "user", "content": prompt}, {"role": "assistant", "content": ad}]


def pair(n, sides, split, **changes):
    prompt = changes.pop("prompt", prompt_text(n, split))
    row = {
        "source": "natural_judged",
        "prompt": prompt,
        "prompt_id": sha(prompt),
        "pair_id": f"{split}-{n}",
        "moment_id": f"m-{split}-{n}",
        "lecture": f"lec-{split}-{n % 3}",
        "type": "slide",
        "axis": "natural",
        "label_source": "judge",
        "cross_family": True,
        "what_differs": None,
    }
    for k, side in enumerate(sides):
        row[side] = turns(prompt, f"AD {k} of {split}{n}")
        row[f"{side}-model"] = f"family-{k}"
        row[f"{side}-rating"] = 0.5 + k / 4
        row[f"{side}-components"] = {"style": 1.0, "terminology": 0.5, "length": 1.0, "deixis": 0.25} | {
            "faithfulness": None,
            "non_redundancy": None,
        }
    return row | changes


def train_row(n, **changes):
    return pair(n, ("chosen", "rejected"), "t", **changes)


def candidate_row(n, eligible=True, **changes):
    return train_row(n, **changes) | {"train_eligible": eligible, "has_direction": True, "judge_flipped": False}


def human_row(n, votes=("option_a", "option_a", "option_b", "tie"), winner="option_a", **changes):
    row = pair(n, ("option_a", "option_b"), "h")
    row |= {"stratum": "natural_decided", "labels_pending": False, "human_winner": winner}
    row |= {f"rater_{k}": vote for k, vote in enumerate(votes, start=1)}
    row |= {"machine_gpt": "option_b", "machine_gpt_reason": "it is shorter"}
    return row | changes


def chat_row(row, **changes):
    frame = {"type": "image", "image": f"keyframes/{row['lecture']}/1.jpg"}
    messages = [
        {"role": "system", "content": "Describe."},
        {"role": "user", "content": [frame, {"type": "text", "text": row["prompt"]}]},
    ]
    return {key: row[key] for key in ("prompt_id", "moment_id", "lecture", "type")} | {"messages": messages} | changes


def arrow_schema(row):
    """Arrow types as on the card, whatever the values: an all-null column is a string column all the same."""
    fields = []
    for name, value in row.items():
        if name in ("chosen", "rejected", "option_a", "option_b"):
            fields.append((name, TURNS))
        elif name.endswith("-components"):
            fields.append((name, SCORES))
        elif name.endswith("-rating"):
            fields.append((name, pa.float64()))
        else:
            fields.append((name, pa.bool_() if isinstance(value, bool) else pa.string()))
    return pa.schema(fields)


def write_parquet(path, rows, schema=None, **options):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema or arrow_schema(rows[0])), path, **options)
    return path


def write_jsonl(path, rows):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8", newline="\n")
    return path


def write_folder(folder, train=None, test=None, **tables):
    """A folder like the hub's. `tables`: candidates, human_val, prompts, subjects, moment_order; absent ones follow the pairs."""
    train = [train_row(n) for n in range(4)] if train is None else train
    test = [human_row(n) for n in range(3)] if test is None else test
    write_parquet(folder / TRAIN, train)
    write_parquet(folder / TEST, test)
    flags = {"train_eligible": True, "has_direction": True}
    write_jsonl(folder / "dpo_train.jsonl", tables.get("candidates", [row | flags for row in train]))
    write_jsonl(folder / "human_val_400.jsonl", tables.get("human_val", test))
    moments = {row["moment_id"]: row for row in train + test}
    write_jsonl(folder / "dpo_prompts.jsonl", tables.get("prompts", [chat_row(row) for row in moments.values()]))
    if "subjects" in tables:
        (folder / "lecture_subjects.json").write_text(json.dumps(tables["subjects"]))
    if "moment_order" in tables:
        write_jsonl(folder / "moment_order.jsonl", tables["moment_order"])
    return folder


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "corpus")


def check(folder, keep=()):
    """Inspect a folder."""
    from ad4edu_train.data.inspection import inspect
    from ad4edu_train.data.sources import locate

    return inspect(locate(str(folder), {}), keep=frozenset(keep))


def check_files(keep=(), **files):
    """Inspect single files, by the name of their table."""
    from ad4edu_train.data.inspection import inspect
    from ad4edu_train.data.sources import DataFiles

    paths = {name: value if isinstance(value, list) else [value] for name, value in files.items()}
    return inspect(DataFiles(root=None, files=paths, keyframes=None, synthetic=False), keep=frozenset(keep))


def message(found):
    return "\n".join(found.problems.lines())


def data_config(**changes):
    """The `data` group with nothing set but what the test says."""
    from ad4edu_train.config import Data

    keys = dict.fromkeys(Data.model_fields)
    keys |= {"demo_moments": 1, "demo_seed": 0, "prompt_view": "text", "prefix_mismatch": "refuse", "on_bad_row": "refuse"}
    keys |= {
        "exclude_subjects": [],
        "validation_fraction": 0.0,
        "validation_by": "moment",
        "max_tokens": 100,
        "max_pixels": 50176,
        "too_long": "refuse",
    }
    return Data(**(keys | changes))
