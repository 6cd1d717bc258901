"""Speed of the mechanical tier on one core: `python benchmarks/scorer_speed.py`. Writes benchmarks/out/scorer_speed.json.

Scores both sides of a synthetic corpus in the card's counts (3,540 pairs, 7,080 sides), then texts of growing length and hostile texts of
100 kB, and starts `explain`. The bars: 7,080 sides within 6 s, a text twice as long at most 2.6 times the cost, 100 kB within 1 s, `explain`
within 1 s. Seconds are of the process's own CPU, so a crowded machine matters less; beside them stands the cost of a plain pass that only
splits the same texts into words, which says how fast the machine is.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from ad4edu_train.demo.corpus import build_corpus
from ad4edu_train.demo.moments import Settings
from ad4edu_train.scoring import Moment, moment_of_prompt, score
from ad4edu_train.scoring.text import words_of

ROOT = Path(__file__).parent.parent
OUT = Path(__file__).parent / "out" / "scorer_speed.json"
CARD_MOMENTS = 271
MAX_SECONDS, MAX_HOSTILE_S, MAX_START_S, MAX_DOUBLING = 6.0, 1.0, 1.0, 2.6
HOSTILE = {
    "dots": ".",
    "quotes": "'a ",
    "stars": "*a",
    "markup": "<a ",
    "deixis": "this one here ",
    "commas": "a, ",
    "spaces": " ",
    "digits": "1-",
}
SENTENCE = "The cursor rests on the loop of Henle, and a red arrow leads to the collecting duct. "
MOMENT = Moment(
    moment_type="pointing",
    transcript="this one here",
    ocr="Nephron Loop of Henle Collecting duct",
    on_screen="A nephron.",
    pause_s=9.0,
)


def cpu(work) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> int:
    corpus = build_corpus(Settings(CARD_MOMENTS, scale="card"))
    sides = [
        (row["prompt"], corpus.cursor[row["lecture"]], row[side][-1]["content"])
        for row in corpus.train
        for side in ("chosen", "rejected")
    ]
    score("A warm-up that loads the word list: the glomerolus.", {"ocr": "Nephron Glomerulus Cortex"})
    seconds = min(
        cpu(lambda: [score(ad, moment_of_prompt(prompt, (), cursor)) for prompt, cursor, ad in sides]) for _ in range(3)
    )
    plain = min(cpu(lambda: [words_of(ad) for _, _, ad in sides]) for _ in range(3))
    lengths = {n: min(cpu(lambda n=n: [score(SENTENCE * n, MOMENT) for _ in range(20)]) for _ in range(3)) for n in (4, 8, 16)}
    doubling = max(lengths[8] / lengths[4], lengths[16] / lengths[8])
    hostile = {name: cpu(lambda unit=unit: score(unit * (100_000 // len(unit)), MOMENT)) for name, unit in HOSTILE.items()}
    start = min(_explain() for _ in range(3))
    result = {
        "sides": len(sides),
        "seconds": seconds,
        "microseconds_a_side": 1e6 * seconds / len(sides),
        "times_a_plain_pass": seconds / plain,
        "doubling": doubling,
        "hostile_100_kb_s": hostile,
        "explain_start_s": start,
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    failed = seconds > MAX_SECONDS or doubling > MAX_DOUBLING or max(hostile.values()) > MAX_HOSTILE_S or start > MAX_START_S
    return int(failed)


def _explain() -> float:
    started = time.monotonic()
    subprocess.run(
        [sys.executable, ROOT / "eval/adedueval.py", "explain", "The cursor rests on the valve."],
        check=True,
        capture_output=True,
    )
    return time.monotonic() - started


if __name__ == "__main__":
    raise SystemExit(main())
