"""Writes a demo corpus as the data folder of docs/data_contract.md, marked synthetic."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ad4edu_train.demo.corpus import MACHINES, RATERS, Corpus, build_corpus, chat_prompts
from ad4edu_train.demo.moments import Settings
from ad4edu_train.demo.slides import draw_slide, jpeg
from ad4edu_train.errors import UserError

MARKER = "SYNTHETIC.json"
TRAIN_FILE = "data/train_prefs-00000-of-00001.parquet"
TEST_FILE = "data/test_human-00000-of-00001.parquet"
CATEGORIES = ("style", "terminology", "length", "deixis", "faithfulness", "non_redundancy")

README = """# Synthetic demo corpus

THESE DATA ARE SYNTHETIC. No lecture was recorded, no description was written by a person or a model, and no blind or
low-vision rater took part: slides, speech, descriptions, the judge, the four raters and the two machine annotators are
drawn from a seeded generator (`ad4edu_train.demo`). The folder has the layout of AD4Edu Preferences so that the tools can
be tried and tested; figures measured on it say nothing about real lectures. Numbers on the slides are random. Ratings are
what the project's own scorer gives the finished texts (`eval/adedueval.py`, mechanical tier).

- test_human moments: {moments}; seed: {seed}; random labels: {null_labels}
- made again, byte for byte, by: `python -m ad4edu_train.demo write DIR {options}`
- `SYNTHETIC.json` is what marks this folder as synthetic for every later step.
"""


def schema(sides: tuple[str, str]) -> pa.Schema:
    """Arrow schema of train_prefs (chosen, rejected) or test_human (option_a, option_b)."""
    turns = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    components = pa.struct([(name, pa.float64()) for name in CATEGORIES])
    fields: list[tuple[str, pa.DataType]] = [(name, pa.string()) for name in ("source", "prompt", "prompt_id")]
    for suffix, kind in (("", turns), ("-model", pa.string()), ("-rating", pa.float64()), ("-components", components)):
        fields += [(side + suffix, kind) for side in sides]
    fields += [(name, pa.string()) for name in ("pair_id", "moment_id", "lecture", "type", "axis", "label_source")]
    fields += [("cross_family", pa.bool_()), ("what_differs", pa.string())]
    if sides[0] == "option_a":
        fields += [("stratum", pa.string()), ("labels_pending", pa.bool_())]
        fields += [(name, pa.string()) for name in (*RATERS, "human_winner")]
        fields += [(f"machine_{name}{part}", pa.string()) for name in MACHINES for part in ("", "_reason")]
    return pa.schema(fields)


def _write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="\n")


def _write_keyframes(folder: Path, corpus: Corpus) -> None:
    for moment in corpus.moments:
        for k, frame in enumerate(moment.frames):
            path = folder / frame
            path.parent.mkdir(parents=True, exist_ok=True)
            seed = f"{corpus.settings.seed}/{moment.moment_id}"
            path.write_bytes(jpeg(draw_slide(moment.slide, k, len(moment.frames), seed)))


def refuse_foreign_folder(folder: Path) -> None:
    """UserError when the target holds something that this generator did not write."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder for the demo corpus")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise UserError(f"{folder} is not empty and is not a demo folder (no {MARKER}); name a new folder")


def _clear(folder: Path) -> None:
    """Removes what an earlier run wrote, so that no keyframe of another seed stays behind."""
    for path in sorted((folder / "keyframes").rglob("*.jpg")):
        path.unlink()


def write_corpus(folder: Path, settings: Settings) -> Corpus:
    """Writes the whole folder and returns the corpus. UserError for a folder that is not ours or a corpus that is too small."""
    refuse_foreign_folder(folder)
    try:
        corpus = build_corpus(settings)
    except ValueError as error:
        raise UserError(f"--moments {settings.moments}: {error}") from None
    # Imported late: what is generated owes nothing to the scorer, which rates the finished texts.
    from ad4edu_train.demo.ratings import provenance, rate

    rate(corpus)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    marker = {
        "synthetic": True,
        "generator": "ad4edu_train.demo",
        "seed": settings.seed,
        "null_labels": settings.null_labels,
        "moments": settings.moments,
        "scale": settings.scale,
    }
    # The marker comes first: an interrupted run leaves a folder that is known to be ours.
    _write_json(folder / MARKER, marker)
    _clear(folder)
    for rows, sides, file in (
        (corpus.train, ("chosen", "rejected"), TRAIN_FILE),
        (corpus.test, ("option_a", "option_b"), TEST_FILE),
    ):
        pq.write_table(pa.Table.from_pylist(rows, schema(sides).with_metadata(provenance())), folder / file)
    _write_jsonl(folder / "dpo_train.jsonl", corpus.candidates)
    _write_jsonl(folder / "dpo_prompts.jsonl", chat_prompts(corpus))
    _write_jsonl(folder / "human_val_400.jsonl", corpus.test)
    _write_jsonl(folder / "gold_eval.jsonl", corpus.gold)
    _write_json(folder / "analysis/cache/cursor_capability.json", corpus.cursor)
    _write_json(folder / "lecture_subjects.json", {m.plan.lecture: m.plan.subject for m in corpus.moments})
    order = ({"moment_id": m.moment_id, "lecture": m.plan.lecture, "time_s": m.time_s} for m in corpus.moments)
    _write_jsonl(folder / "moment_order.jsonl", order)
    options = "--scale card" if settings.scale == "card" else f"--moments {settings.moments}"
    options += f" --seed {settings.seed}" + (" --null-labels" if settings.null_labels else "")
    text = README.format(**(vars(settings) | {"options": options}))
    (folder / "README.md").write_text(text, encoding="utf-8", newline="\n")
    _write_keyframes(folder, corpus)
    return corpus
