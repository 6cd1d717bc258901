"""A synthetic data set with the columns and counts of the second card, DataSmith-Preference-HumanEval.

Conversations are syllables, not language: nobody wrote or judged them. Each comparison has a latent quality difference; evaluators
see it with noise of their own and lean a little to the longer conversation, so that there is something to measure.
"""

import json
import math
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ad4edu_train.demo.write import MARKER, refuse_foreign_folder
from ad4edu_train.errors import UserError

FILE = "data/train-00000-of-00001.parquet"
GENERATOR = "ad4edu_train.demo write-datasmith"
# language: (comparisons, comparisons with a second judgment, evaluators), the card's counts; its 24 evaluators are spread here.
LANGUAGES = {
    "ar": (232, 0, 2),
    "ceb": (230, 0, 2),
    "cs": (168, 0, 2),
    "de": (236, 3, 2),
    "es": (196, 0, 2),
    "fr": (214, 6, 3),
    "id": (193, 0, 2),
    "ja": (210, 2, 2),
    "sw": (159, 0, 2),
    "tl": (229, 1, 2),
    "yo": (228, 10, 3),
}
SOURCES = (("Nemotron Instruction Following Chat", 1554), ("Dolci Instruct SFT", 741))
MEDIAN_MS = 252_000  # 4.2 minutes a judgment
FIRST_DAY, DAYS = datetime(2026, 9, 7), 19
ASPECTS = ("naturalness", "cultural_appropriateness", "instruction_following", "coherence")
SYLLABLES = ("ka", "lo", "mi", "tu", "re", "sa", "no", "vi", "pe", "du")

README = """# Synthetic comparisons in the form of DataSmith-Preference-HumanEval

THESE DATA ARE SYNTHETIC. The conversations are random syllables, and no evaluator took part: preferences, times and comments are drawn
from a seeded generator (`ad4edu_train.demo`). Columns and counts are those of the data set card (2,295 comparisons, 2,317 judgments, 24
evaluators, 11 languages). Figures measured on them say nothing about real systems or people.

- made again, byte for byte, by: `python -m ad4edu_train.demo write-datasmith DIR --seed {seed}`
- `SYNTHETIC.json` is what marks this folder as synthetic for every later step.
"""


def write_datasmith(folder: Path, seed: int) -> int:
    """Writes the folder and returns the number of comparisons. UserError for a folder that holds something else."""
    refuse_foreign_folder(folder)
    marker = folder / MARKER
    if marker.is_file() and GENERATOR not in marker.read_text(encoding="utf-8", errors="replace"):
        raise UserError(f"{folder} holds a demo corpus of another kind; name another folder")
    (folder / "data").mkdir(parents=True, exist_ok=True)
    # The marker comes first: an interrupted run leaves a folder that is known to be ours.
    content = {"synthetic": True, "generator": GENERATOR, "seed": seed}
    marker.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8", newline="\n")
    rows = comparisons(seed)
    pq.write_table(pa.Table.from_pylist(rows, schema()), folder / FILE)
    (folder / "README.md").write_text(README.format(seed=seed), encoding="utf-8", newline="\n")
    return len(rows)


def schema() -> pa.Schema:
    """Arrow schema of the card's `train` split."""
    turns = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    annotation = [("annotator_id", pa.string()), ("session_id", pa.string()), ("annotated_at", pa.timestamp("s"))]
    annotation += [("duration_ms", pa.int64())]
    annotation += [(f"preference_{aspect}", pa.string()) for aspect in (*ASPECTS, "overall")]
    annotation += [("comment", pa.string()), ("instance_feedback", pa.string())]
    fields = [(name, pa.string()) for name in ("id", "language", "source", "source_id", "seed_prompt", "smith_id")]
    fields += [("smith_messages", turns), ("teacher_id", pa.string()), ("teacher_messages", turns)]
    return pa.schema([*fields, ("annotations", pa.list_(pa.struct(annotation)))])


def comparisons(seed: int) -> list[dict[str, Any]]:
    """Rows of the card, in the card's counts."""
    random = Random(f"datasmith/{seed}")
    sources = [name for name, count in SOURCES for _ in range(count)]
    random.shuffle(sources)
    rows: list[dict[str, Any]] = []
    for language, (count, twice, evaluators) in LANGUAGES.items():
        leaning = {f"{language}-evaluator-{number + 1}": random.gauss(0, 0.3) for number in range(evaluators)}
        second = set(random.sample(range(count), twice))
        for number in range(count):
            row = _comparison(random, language, sources[len(rows)], len(rows))
            who = random.sample(sorted(leaning), 2 if number in second else 1)
            quality = random.gauss(0.35, 1)
            longer = 0.15 * math.copysign(1, _size(row["smith_messages"]) - _size(row["teacher_messages"]))
            row["annotations"] = [_annotation(random, name, quality + longer + leaning[name]) for name in who]
            rows.append(row)
    _set_median([annotation for row in rows for annotation in row["annotations"]])
    return rows


def _comparison(random: Random, language: str, source: str, number: int) -> dict[str, Any]:
    return {
        "id": f"synthetic-{number:05d}",
        "language": language,
        "source": source,
        "source_id": f"seed-{number:05d}",
        "seed_prompt": f"SYNTHETIC seed {number}: {_words(random, 12)}",
        "smith_id": f"smith-{number:05d}",
        "smith_messages": _conversation(random, language),
        "teacher_id": f"teacher-{number:05d}",
        "teacher_messages": _conversation(random, language),
    }


def _conversation(random: Random, language: str) -> list[dict[str, str]]:
    turns = []
    for _ in range(random.randint(1, 3)):
        turns.append({"role": "user", "content": f"[synthetic {language}] {_words(random, random.randint(4, 12))}"})
        turns.append({"role": "assistant", "content": _words(random, random.randint(15, 60))})
    return turns


def _words(random: Random, count: int) -> str:
    return " ".join("".join(random.choices(SYLLABLES, k=random.randint(1, 4))) for _ in range(count))


def _size(messages: list[dict[str, str]]) -> int:
    return sum(len(message["content"]) for message in messages)


def _annotation(random: Random, evaluator: str, quality: float) -> dict[str, Any]:
    """One judgment: every aspect sees the quality with noise; the overall preference is that of their mean."""
    seen = {aspect: quality + random.gauss(0, 0.7) for aspect in ASPECTS}
    seen["overall"] = sum(seen.values()) / len(ASPECTS) + random.gauss(0, 0.2)
    preferences = {f"preference_{aspect}": _preference(random, value) for aspect, value in seen.items()}
    at = FIRST_DAY + timedelta(days=random.randrange(DAYS), seconds=random.randrange(86_400))
    commented = random.random() < 0.1
    return {
        "annotator_id": evaluator,
        "session_id": f"{evaluator}-session-{at:%m%d}",
        "annotated_at": at,
        "duration_ms": round(MEDIAN_MS * random.lognormvariate(0, 0.6)),
        **preferences,
        "comment": f"Synthetic comment: {_words(random, 6)}" if commented else "",
        "instance_feedback": f"Synthetic feedback: {_words(random, 5)}" if random.random() < 0.02 else "",
    }


def _preference(random: Random, value: float) -> str:
    if abs(value) < 0.25:
        return random.choice(("tie_both_good", "tie_both_bad"))
    side = "smith" if value > 0 else "teacher"
    return f"strong_{side}" if abs(value) > 1.2 else side


def _set_median(annotations: list[dict[str, Any]]) -> None:
    """Scales the durations so that their median is the card's."""
    scale = MEDIAN_MS / median(annotation["duration_ms"] for annotation in annotations)
    for annotation in annotations:
        annotation["duration_ms"] = round(annotation["duration_ms"] * scale)
