"""Time and memory of the data checks over tables of three sizes: `python benchmarks/describe_scale.py`.

Writes synthetic folders in the card's proportions (all files, Parquet in several row groups), inspects each in a process of
its own, and writes benchmarks/out/describe_scale.json. The bars: 3 s for the card's 3,540 pairs (process start included),
seconds in proportion to pairs, and at most 200 bytes of memory a pair beyond a fixed base.
"""

import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CARD = {"train": 3540, "moments": 808, "lectures": 49, "test": 400, "test_moments": 271, "test_lectures": 27}
SIZES = (3_540, 35_400, 200_000)
CARD_PROMPT_BYTES, SHORT_PROMPT_BYTES = 2_000, 200  # long prompts for the card's size, short ones where only the slope counts
MAX_SECONDS, MAX_BYTES_A_PAIR = 3.0, 200
CANDIDATES_A_PAIR = 1.25  # candidates beside each eligible pair: flips, ties and the test pairs
TYPES, TYPE_WEIGHTS = ("pointing", "slide", "figure", "reveal", "animation", "ink"), (2033, 850, 288, 183, 67, 32)
AXES = ("deixis", "faithfulness", "length", "natural", "non_redundancy", "style", "terminology")
AXIS_WEIGHTS = (219, 145, 191, 2501, 170, 149, 165)
OUT = Path(__file__).parent / "out" / "describe_scale.json"
# Peak memory of the process in kB, from the kernel: what the inspection held at most, imports included.
INSPECT = """
import sys
from ad4edu_train.data.__main__ import main
status = main(["describe", sys.argv[1]])
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(f"PEAK {peak} {status}")
"""


def words(rng: random.Random, size: int) -> str:
    return " ".join(f"w{rng.randrange(10_000)}" for _ in range(max(size // 6, 1)))


def pair(rng: random.Random, number: int, moment: int, split: str, lecture: int, prompt: str, sides: tuple[str, str]) -> dict:
    axis = rng.choices(AXES, AXIS_WEIGHTS)[0]
    row = {
        "source": "natural_judged" if axis == "natural" else "constructed_counterfactual",
        "prompt": prompt,
        "prompt_id": hashlib.sha256(prompt.encode()).hexdigest(),
        "pair_id": f"{split}-p{number:07d}",
        "moment_id": f"{split}-m{moment:07d}",
        "lecture": f"lecture-{lecture:05d}",
        "type": prompt.partition("\n")[0].removeprefix("Moment type: "),
        "axis": axis,
        "label_source": "judge" if axis == "natural" else "construction",
        "cross_family": axis == "natural",
        "what_differs": None if axis == "natural" else f"{axis} perturbed",
    }
    for side in sides:
        row[side] = [
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": f"{side} {number} {words(rng, 120)}"},
        ]
        row[f"{side}-model"] = rng.choice(("gpt-5.5", "claude-sonnet-4.6"))
        row[f"{side}-rating"] = rng.random()
        row[f"{side}-components"] = {"style": 1.0, "terminology": 1.0, "length": 0.5, "deixis": None}
        row[f"{side}-components"] |= {"faithfulness": None, "non_redundancy": None}
    return row


def votes(rng: random.Random) -> dict:
    raters = {f"rater_{k}": rng.choice(("option_a", "option_b", "tie")) for k in range(1, 5)}
    margin = sum((vote == "option_a") - (vote == "option_b") for vote in raters.values())
    winner = "option_a" if margin > 0 else "option_b" if margin < 0 else None
    return raters | {"human_winner": winner, "stratum": "controlled", "labels_pending": False}


def write_folder(folder: Path, pairs: int, prompt_bytes: int) -> None:
    rng, scale = random.Random(pairs), pairs / CARD["train"]
    moments, lectures = round(CARD["moments"] * scale), max(round(CARD["lectures"] * scale), 1)
    test_moments, test_pairs = round(CARD["test_moments"] * scale), round(CARD["test"] * scale)

    def prompt(split: str, moment: int) -> str:
        local = random.Random(f"{split}{moment}")
        kind = local.choices(TYPES, TYPE_WEIGHTS)[0]
        said, ocr = words(local, prompt_bytes // 2), words(local, prompt_bytes // 4)
        screen = words(local, prompt_bytes // 4)
        return f"Moment type: {kind}\nLecturer said: {said}\nOn-screen text (OCR): {ocr}\nWhat is on screen: {screen}"

    train_lecture = [rng.randrange(lectures) for _ in range(moments)]
    test_lecture = [rng.randrange(lectures // 2, lectures + lectures // 4 + 1) for _ in range(test_moments)]
    (folder / "data").mkdir(parents=True)
    writer = None
    with (folder / "dpo_train.jsonl").open("w") as candidates:
        batch = []
        for number in range(round(pairs * CANDIDATES_A_PAIR)):
            moment = number * moments // round(pairs * CANDIDATES_A_PAIR)
            eligible = number % 5 != 4
            sides = ("chosen", "rejected")
            row = pair(rng, number, moment, "train", train_lecture[moment], prompt("train", moment), sides)
            flags = {"train_eligible": eligible, "has_direction": eligible, "judge_flipped": not eligible}
            candidates.write(json.dumps(row | flags) + "\n")
            if eligible:
                batch.append(row)
            if batch and (len(batch) == 1000 or number == round(pairs * CANDIDATES_A_PAIR) - 1):
                table = pa.Table.from_pylist(batch)
                writer = writer or pq.ParquetWriter(folder / "data/train_prefs-00000-of-00001.parquet", table.schema)
                writer.write_table(table.cast(writer.schema), row_group_size=1000)
                batch = []
    writer.close()
    with (folder / "human_val_400.jsonl").open("w") as file:
        rows = []
        for number in range(test_pairs):
            moment = number * test_moments // test_pairs
            sides = ("option_a", "option_b")
            row = pair(rng, number, moment, "test", test_lecture[moment], prompt("test", moment), sides) | votes(rng)
            rows.append(row)
            file.write(json.dumps(row) + "\n")
        pq.write_table(pa.Table.from_pylist(rows), folder / "data/test_human-00000-of-00001.parquet", row_group_size=1000)
    with (folder / "dpo_prompts.jsonl").open("w") as file:
        for split, count, lecture_of in (("train", moments, train_lecture), ("test", test_moments, test_lecture)):
            for moment in range(count):
                text = prompt(split, moment)
                row = {"moment_id": f"{split}-m{moment:07d}", "lecture": f"lecture-{lecture_of[moment]:05d}", "type": "slide"}
                row["prompt_id"] = hashlib.sha256(text.encode()).hexdigest()
                frame = {"type": "image", "image": f"keyframes/{row['lecture']}/{moment}.jpg"}
                row["messages"] = [{"role": "user", "content": [frame, {"type": "text", "text": text}]}]
                file.write(json.dumps(row) + "\n")


def measure(folder: Path, pairs: int, prompt_bytes: int) -> dict:
    begin = time.perf_counter()
    ran = subprocess.run([sys.executable, "-c", INSPECT, str(folder)], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    last = ran.stdout.strip().splitlines()[-1] if ran.stdout else ""
    if not last.startswith("PEAK") or not last.endswith(" 0"):
        raise SystemExit(f"the inspection failed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    peak = int(last.split()[1]) * 1024
    return {
        "pairs": pairs,
        "prompt_bytes": prompt_bytes,
        "folder_mb": round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 1),
        "seconds": round(seconds, 3),
        "microseconds_per_pair": round(seconds / pairs * 1e6, 1),
        "peak_rss_mb": round(peak / 1e6, 1),
        "peak_rss_bytes": peak,
    }


def main() -> int:
    # The slopes compare tables of one kind, so the first size is measured with short prompts too.
    plans = [(SIZES[0], CARD_PROMPT_BYTES), *((size, SHORT_PROMPT_BYTES) for size in SIZES)]
    results = []
    for pairs, prompt_bytes in plans:
        folder = Path(tempfile.mkdtemp(prefix="describe_scale_"))
        try:
            write_folder(folder, pairs, prompt_bytes)
            results.append(measure(folder, pairs, prompt_bytes))
        finally:
            shutil.rmtree(folder)
        print(json.dumps(results[-1]), flush=True)
    slopes = []
    for small, large in pairwise(results[1:]):
        more = large["pairs"] - small["pairs"]
        slopes.append(
            {
                "from_pairs": small["pairs"],
                "to_pairs": large["pairs"],
                "bytes_per_pair": round((large["peak_rss_bytes"] - small["peak_rss_bytes"]) / more, 1),
                "microseconds_per_pair": round((large["seconds"] - small["seconds"]) / more * 1e6, 1),
            }
        )
        print(json.dumps(slopes[-1]))
    met = {
        "card_size_under_3_s": results[0]["seconds"] < MAX_SECONDS,
        "at_most_200_bytes_per_pair": max(slope["bytes_per_pair"] for slope in slopes) <= MAX_BYTES_A_PAIR,
        # A cost of n log n would be 15 % above linear here; a quadratic one 6 times.
        "linear": slopes[1]["microseconds_per_pair"] <= 1.3 * slopes[0]["microseconds_per_pair"],
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({"sizes": results, "slopes": slopes, "met": met}, indent=1) + "\n")
    print(json.dumps(met))
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
