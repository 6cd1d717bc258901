"""Measures whether a demo corpus is a fair test: learnable from prompt and description, not from descriptions alone."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

from ad4edu_train.demo.corpus import RATERS, Row, build_corpus
from ad4edu_train.demo.facts import COLOURS, MARKERS, POSITIONS
from ad4edu_train.demo.moments import Settings
from ad4edu_train.demo.topics import library
from ad4edu_train.errors import UserError

AUDIT_MOMENTS = 271
Z95 = 1.959964
OPTIONS = ("option_a", "option_b")


@dataclass(frozen=True)
class Claim:
    """A measured figure against its bar. `interval` is Wilson's 95 %, for shares only; `low` and `high` are inclusive."""

    name: str
    value: float
    n: int
    low: float
    high: float
    interval: tuple[float, float] | None = None

    @property
    def holds(self) -> bool:
        return self.n > 0 and self.low <= self.value <= self.high


def share(name: str, hits: Sequence[bool], low: float, high: float) -> Claim:
    """A share of units with its Wilson interval; units of one moment are taken as independent."""
    if not hits:
        return Claim(name, float("nan"), 0, low, high)
    return Claim(name, sum(hits) / len(hits), len(hits), low, high, wilson(sum(hits), len(hits)))


def wilson(k: float, n: float) -> tuple[float, float] | None:
    """95 % score interval of k hits in n units (Wilson 1927); None without units."""
    if not n:
        return None
    p = k / n
    centre, scale = p + Z95**2 / (2 * n), 1 + Z95**2 / n
    half = Z95 * sqrt(p * (1 - p) / n + Z95**2 / (4 * n * n))
    return (centre - half) / scale, (centre + half) / scale


def _said(row: Row, side: str) -> str:
    return str(row[side][-1]["content"])


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def natural(rows: list[Row]) -> list[Row]:
    """Natural pairs that the raters decided."""
    return [row for row in rows if row["axis"] == "natural" and row["human_winner"]]


def surface_classifier(train: list[Row], test: list[Row]) -> list[bool]:
    """Does a logistic regression on n-grams and length of the two descriptions, without the prompt, find the raters' side?

    Fitted on every train pair, the better side first and second in turn.
    """
    import numpy as np
    from scipy.sparse import csr_matrix, diags, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    chars = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), min_df=5, sublinear_tf=True)
    good, bad = [_said(row, "chosen") for row in train], [_said(row, "rejected") for row in train]
    words.fit(good + bad)
    chars.fit(good + bad)

    def features(texts: list[str]) -> Any:
        lengths = np.array([[len(text.split()) / 20, len(text) / 120] for text in texts])
        return hstack([words.transform(texts), chars.transform(texts), csr_matrix(lengths)]).tocsr()

    signs = np.where(np.arange(len(train)) % 2, -1.0, 1.0)
    gaps = diags(signs) @ (features(good) - features(bad))
    # Without an intercept a pair and its mirror image give the same loss, so one order of each is enough.
    model = LogisticRegression(max_iter=300, tol=1e-3, fit_intercept=False)
    model.fit(gaps, signs)
    a, b = ([_said(row, side) for row in test] for side in OPTIONS)
    picks_a = model.decision_function(features(a) - features(b)) > 0
    return [bool(pick) == (row["human_winner"] == "option_a") for pick, row in zip(picks_a, test, strict=True)]


def overlap(prompt: str, description: str) -> float:
    """Share of the description's words that are on screen in the prompt and not in the lecturer's speech."""
    speech, _, rest = prompt.partition("\nOn-screen text (OCR): ")
    screen = set(_words(rest.rpartition("\nPause available: ")[0])) - set(_words(speech))
    words = _words(description)
    return sum(word in screen for word in words) / max(len(words), 1)


def by_overlap(test: list[Row], prompts: list[str]) -> list[bool]:
    """Does the word-overlap predictor find the raters' side, given these prompts? Its ties are left out."""
    gaps = [
        overlap(text, _said(row, "option_a")) - overlap(text, _said(row, "option_b"))
        for row, text in zip(test, prompts, strict=True)
    ]
    return [(gap > 0) == (row["human_winner"] == "option_a") for gap, row in zip(gaps, test, strict=True) if gap]


def other_prompts(test: list[Row], rng: Random) -> list[str]:
    """For each row the prompt of another moment, at random."""
    return [rng.choice([other["prompt"] for other in test if other["moment_id"] != row["moment_id"]]) for row in test]


def longer_side(rows: list[Row], first: str, second: str, wins: Callable[[Row], bool]) -> list[bool]:
    """Is the side with more words the better one? `wins` says whether `first` is; rows of equal length are left out."""
    gaps = [(len(_said(row, first).split()) - len(_said(row, second).split()), row) for row in rows]
    return [(gap > 0) == wins(row) for gap, row in gaps if gap]


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W_]+", text.lower()))


def _contents() -> set[tuple[str, ...]]:
    """Everything that fills a slot of a wording, as token sequences."""
    names = [
        *COLOURS,
        *(place for places in POSITIONS.values() for place in places),
        *(m for marks in MARKERS.values() for m in marks),
    ]
    for topic in (topic for topics in library().values() for topic in topics):
        names.append(topic.unit)
        for term in topic.terms:
            names += [term.name, f"{term.relation} {term.target}"]
    return {_tokens(name) for name in names}


def skeletons(texts: set[str]) -> set[str]:
    """The wordings of sentences, with terms, relations, numbers, colours, places and markers blanked."""
    contents = _contents()
    longest = max(map(len, contents))
    found = set()
    for text in texts:
        # Captions quoted from the slide are content, shared by both splits like terms are.
        for sentence in re.split(r"(?<=[.:]) ", re.sub(r'^Under the words "[^"]*": ', "", text)):
            tokens, shape, i = _tokens(sentence), [""], 0
            while i < len(tokens):
                size = next((n for n in range(longest, 0, -1) if tokens[i : i + n] in contents and i + n <= len(tokens)), 0)
                blank = size or tokens[i].isdigit()
                if not (blank and shape[-1] == "_"):
                    shape.append("_" if blank else tokens[i])
                i += max(size, 1)
            if any(word not in ("", "_") for word in shape):
                found.add(" ".join(shape[1:]))
    return found


def rater_agreement(rows: list[Row]) -> list[bool]:
    """Do two raters who both decided agree? One entry for each pair of raters on each pair of descriptions."""
    answers = [[row[name] for name in RATERS] for row in rows]
    return [a == b for row in answers for i, a in enumerate(row) for b in row[i + 1 :] if a in OPTIONS and b in OPTIONS]


def audit(train: list[Row], test: list[Row], candidates: list[Row], null_labels: bool, seed: int) -> list[Claim]:
    """All claims about a corpus. With null labels nothing may predict them, so the bars of the predictors say chance."""
    human, rng = natural(test), Random(f"audit/{seed}")
    right = by_overlap(human, [row["prompt"] for row in human])
    shuffled = [hit for _ in range(5) for hit in by_overlap(human, other_prompts(human, rng))]
    judged = [row for row in candidates if row["axis"] == "natural" and not row["in_test_human"]]
    decided = [row for row in train if row["axis"] == "natural" and row["cross_family"]]
    sides = {"train": ("chosen", "rejected"), "test": OPTIONS}
    texts = {
        split: {_said(row, side) for row in rows for side in sides[split]} for split, rows in (("train", train), ("test", test))
    }
    chance = (0.38, 0.62)
    claims = [
        share(
            "AD-only classifier on natural test pairs",
            surface_classifier(train, human),
            0.0,
            chance[1] if null_labels else 0.60,
        ),
        share(
            "longer side wins, natural test pairs",
            longer_side(human, *OPTIONS, lambda row: row["human_winner"] == "option_a"),
            *(chance if null_labels else (0.45, 0.56)),
        ),
        share("fact overlap, right prompt, natural test pairs", right, *(chance if null_labels else (0.60, 0.90))),
        replace(
            share("fact overlap, shuffled prompts (mean of 5)", shuffled, 0.42, 0.58),
            # Five shuffles repeat the same pairs, so the interval counts each pair once.
            interval=wilson(sum(shuffled) / 5, len(shuffled) / 5),
        ),
        share(
            "two raters agree where both decide",
            rater_agreement(test),
            *((0.44, 0.56) if null_labels else (0.70, 0.80)),
        ),
        share("judge flips when the order is swapped", [row["judge_flipped"] for row in judged], 0.127, 0.167),
        share(
            "judge prefers the longer side, cross-family",
            longer_side(decided, "chosen", "rejected", lambda row: True),
            *((0.45, 0.55) if null_labels else (0.54, 0.60)),
        ),
        Claim("slide topics in the library", sum(map(len, library().values())), 1, 300, float("inf")),
        Claim("AD texts common to train and test", len(texts["train"] & texts["test"]), 1, 0, 0),
        Claim(
            "sentence wordings common to train and test",
            len(skeletons(texts["train"]) & skeletons(texts["test"])),
            1,
            0,
            0,
        ),
    ]
    for axis in sorted({row["axis"] for row in train} - {"natural", "length"}):
        gaps = [len(_said(r, "chosen").split()) - len(_said(r, "rejected").split()) for r in train if r["axis"] == axis]
        claims.append(Claim(f"words, compliant minus defective: {axis}", sum(gaps) / len(gaps), len(gaps), -0.5, 0.5))
    return claims


def audit_new(seed: int, moments: int = AUDIT_MOMENTS, null_labels: bool = False) -> list[Claim]:
    """Claims about a new corpus that is only held in memory."""
    corpus = build_corpus(Settings(moments, seed, null_labels))
    return audit(corpus.train, corpus.test, corpus.candidates, null_labels, seed)


def audit_folder(folder: Path, seed: int = 0) -> list[Claim]:
    """Claims about a folder that `write` made. UserError when it is not one."""
    import pyarrow.parquet as pq

    from ad4edu_train.demo.write import MARKER, TEST_FILE, TRAIN_FILE

    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        train, test = (pq.read_table(folder / name).to_pylist() for name in (TRAIN_FILE, TEST_FILE))
        with (folder / "dpo_train.jsonl").open(encoding="utf-8") as file:
            candidates = [json.loads(line) for line in file]
        null_labels = bool(marker["null_labels"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{folder} is not a complete demo folder ({error}); make one with `python -m ad4edu_train.demo write`"
        ) from None
    return audit(train, test, candidates, null_labels, seed)


def _figure(value: float, claim: Claim) -> str:
    return f"{100 * value:.1f} %" if claim.interval else f"{value:.6g}"


def print_claims(claims: list[Claim]) -> int:
    """Prints the table; returns the exit code, 1 when a bar fails."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Audit of a synthetic demo corpus (synthetic lectures, synthetic raters)")
    for column in ("claim", "measured", "95 % interval", "n", "bar", ""):
        table.add_column(column, justify="left" if column in ("claim", "") else "right")
    for claim in claims:
        bounds = " to ".join(_figure(bound, claim) for bound in claim.interval) if claim.interval else "-"
        bar = f"{_figure(claim.low, claim)} to {_figure(claim.high, claim)}"
        n = str(claim.n) if claim.n != 1 else "-"
        table.add_row(claim.name, _figure(claim.value, claim), bounds, n, bar, "pass" if claim.holds else "FAIL")
    Console(width=130).print(table)
    failed = [claim.name for claim in claims if not claim.holds]
    print(
        f"synthetic corpus: {len(claims) - len(failed)} of {len(claims)} bars hold"
        + (f"; failed: {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0
