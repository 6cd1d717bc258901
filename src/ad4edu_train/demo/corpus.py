"""Assembles the demo corpus: moments on slides, pairs on moments, labels on pairs. Everything follows from the settings."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, cycle
from random import Random
from typing import Any

from ad4edu_train.demo import raters
from ad4edu_train.demo.candidates import Description, candidate, compliant, describe, family_quality
from ad4edu_train.demo.moments import Moment, Settings, build_moments
from ad4edu_train.demo.perturb import ConstructedPair, construct
from ad4edu_train.demo.phrasing import families, phrases

MACHINES = ("synthetic-a", "synthetic-b")
RATERS = ("rater_1", "rater_2", "rater_3", "rater_4")
TRIES = 300  # redraws of a test pair after which only the judge's verdict has to fit, not which side is longer

Row = dict[str, Any]


@dataclass
class Corpus:
    settings: Settings
    moments: list[Moment] = field(default_factory=list)
    train: list[Row] = field(default_factory=list)
    test: list[Row] = field(default_factory=list)
    candidates: list[Row] = field(default_factory=list)
    cursor: dict[str, bool] = field(default_factory=dict)
    gold: list[Row] = field(default_factory=list)


class PairSource:
    """Fresh natural pairs of one moment: two descriptions of different families, or of one where the plan asks for it."""

    def __init__(self, moment: Moment, seed: int) -> None:
        self.moment = moment
        self.quality = family_quality(moment.moment_id, seed)
        self.rng = Random(f"natural/{seed}/{moment.moment_id}")
        self.seen: set[str] = set()

    def _one(self, family: str) -> Description:
        split, slide = self.moment.plan.split, self.moment.slide
        while True:
            made = describe(candidate(slide, family, split, self.quality[family], self.rng), slide)
            if made.text not in self.seen:
                return made

    def draw(self, same_family: bool) -> tuple[Description, Description]:
        first, second = self.rng.sample(families(), 2)
        a, b = self._one(first), self._one(first if same_family else second)
        return (a, b) if a.text != b.text else self.draw(same_family)

    def keep(self, a: Description, b: Description) -> None:
        self.seen |= {a.text, b.text}


def _turns(text: str, description: str) -> list[Row]:
    return [{"role": "user", "content": text}, {"role": "assistant", "content": description}]


def _row(moment: Moment, sides: tuple[str, str], first: Description, second: Description, kind: str, axis: str) -> Row:
    """The columns that both tables share; `sides` are the column prefixes."""
    row: Row = {
        "source": "natural_judged" if axis == "natural" else "constructed_counterfactual",
        "prompt": moment.prompt,
        "prompt_id": moment.prompt_id,
        sides[0]: _turns(moment.prompt, first.text),
        sides[1]: _turns(moment.prompt, second.text),
        f"{sides[0]}-model": first.family,
        f"{sides[1]}-model": second.family,
    }
    row |= {f"{side}-{column}": None for column in ("rating", "components") for side in sides}
    row |= {"pair_id": "", "moment_id": moment.moment_id, "lecture": moment.plan.lecture, "type": kind, "axis": axis}
    return row | {"label_source": None, "cross_family": first.family != second.family, "what_differs": None}


def _train_pairs(moment: Moment, settings: Settings) -> Iterator[tuple[Row, str]]:
    """Rows of a train moment, each with its reason: construction, the judge's a or b, or why the judge gave no direction."""
    rng = Random(f"train/{settings.seed}/{moment.moment_id}")
    source, same_family = PairSource(moment, settings.seed), moment.plan.same_family
    sides = ("chosen", "rejected")
    for kind, axis, _ in moment.plan.pairs:
        if axis != "natural":
            made = _distinct(moment, axis, source, rng)
            row = _row(moment, sides, made.compliant, made.defective, kind, axis)
            yield row | {"label_source": "construction", "what_differs": made.what_differs}, "construction"
            continue
        verdict = ""
        while verdict not in ("a", "b"):
            a, b = source.draw(same_family > 0)
            source.keep(a, b)
            verdict = raters.judge(a.conveyed, b.conveyed, moment.tastes, rng)
            first, second = (b, a) if verdict == "b" else (a, b)
            row = _row(moment, sides, first, second, kind, axis)
            yield row | {"label_source": "judge" if verdict in ("a", "b") else None}, verdict
        same_family -= 1


def _distinct(moment: Moment, axis: str, source: PairSource, rng: Random) -> ConstructedPair:
    """A constructed pair whose compliant text is new at this moment and whose sides differ."""
    while True:
        made = construct(axis, moment.slide, rng.choice(families()), moment.plan.split, rng)
        if made.compliant.text not in source.seen and made.compliant.text != made.defective.text:
            source.keep(made.compliant, made.defective)
            return made


def _answers(a: Description, b: Description, moment: Moment, seed: int, rng: Random) -> dict[str, str | None]:
    return {name: raters.rate(a.conveyed, b.conveyed, raters.rater_weights(name, seed), moment.tastes, rng) for name in RATERS}


def _test_pairs(
    moment: Moment, settings: Settings, longer_wins: dict[str, bool], compliant_first: Iterator[bool]
) -> Iterator[Row]:
    """Rows of a test moment, answered by the raters.

    Natural pairs are redrawn until the judge's verdict fits the stratum and, on every other decided one, the longer side is the
    winner: length tells nothing about these pairs by design.
    """
    seed, rng = settings.seed, Random(f"test/{settings.seed}/{moment.moment_id}")
    source = PairSource(moment, seed)
    for kind, axis, stratum in moment.plan.pairs:
        assert stratum is not None
        label: dict[str, str | None]
        if stratum == "controlled":
            made = _distinct(moment, axis, source, rng)
            a, b = (made.compliant, made.defective) if next(compliant_first) else (made.defective, made.compliant)
            label = {"label_source": "construction", "what_differs": made.what_differs}
            answers = _answers(a, b, moment, seed, rng)
        else:
            for attempt in count():
                a, b = source.draw(same_family=False)
                verdict = raters.judge(a.conveyed, b.conveyed, moment.tastes, rng)
                answers = _answers(a, b, moment, seed, rng)
                fits = verdict == "flip" if stratum == "natural_flip" else verdict in ("a", "b")
                gap, winner = a.conveyed.words - b.conveyed.words, raters.human_winner(list(answers.values()))
                if fits and (gap == 0 or winner is None or attempt >= TRIES):
                    break
                if fits and ((gap > 0) == (winner == "option_a")) == longer_wins[stratum]:
                    longer_wins[stratum] = not longer_wins[stratum]
                    break
            source.keep(a, b)
            label = {"label_source": None if stratum == "natural_flip" else "judge"}
            if stratum == "natural_decided":
                label["judge"] = "option_" + verdict
        row = _row(moment, ("option_a", "option_b"), a, b, kind, axis) | label
        row |= {"stratum": stratum, "labels_pending": False} | answers
        row["human_winner"] = raters.human_winner([answers[name] for name in RATERS])
        for machine in MACHINES:
            weights = raters.rater_weights(machine, seed)
            choice = raters.machine_choice(a.conveyed, b.conveyed, weights, moment.tastes, rng)
            row |= {f"machine_{machine}": choice, f"machine_{machine}_reason": rng.choice(raters.REASONS[choice])}
        row["compliant"] = None if stratum != "controlled" else ("option_a" if a is made.compliant else "option_b")
        yield row


def _unlabel(row: Row, rng: Random) -> None:
    """Replaces every label of a row by a coin; texts stay."""
    if "chosen" in row:
        if rng.random() < 0.5:
            for column in ("", "-model", "-rating", "-components"):
                a, b = f"chosen{column}", f"rejected{column}"
                row[a], row[b] = row[b], row[a]
        return
    choices = ("option_a", "option_b")
    row |= {name: rng.choices((*choices, "tie"), (0.44, 0.44, 0.12))[0] for name in RATERS}
    row["human_winner"] = raters.human_winner([row[name] for name in RATERS])
    for machine in MACHINES:
        row[f"machine_{machine}"] = rng.choice(choices)
        row[f"machine_{machine}_reason"] = rng.choice(raters.REASONS[row[f"machine_{machine}"]])
    for key in ("judge", "compliant"):
        if row.get(key):
            row[key] = rng.choice(choices)


def _flags(reason: str, in_test: bool) -> Row:
    return {
        "train_eligible": not in_test and reason in ("construction", "a", "b"),
        "has_direction": reason in ("construction", "a", "b"),
        "judge_flipped": reason == "flip",
        "judge_tie": reason == "tie",
        "judge_unparsed": reason == "unparsed",
        "in_test_human": in_test,
    }


def _as_candidate(row: Row) -> Row:
    """A test pair in the columns of dpo_train: ordered by judge or construction where that has a direction."""
    better = row["judge"] or row["compliant"]
    order = ("option_b", "option_a") if better == "option_b" else ("option_a", "option_b")
    shared = ("source", "prompt", "prompt_id")
    rest = ("pair_id", "moment_id", "lecture", "type", "axis", "label_source", "cross_family", "what_differs")
    result = {key: row[key] for key in shared}
    for column in ("", "-model", "-rating", "-components"):
        result |= {name + column: row[side + column] for name, side in zip(("chosen", "rejected"), order, strict=True)}
    reason = {"natural_flip": "flip", "natural_decided": "a", "controlled": "construction"}[row["stratum"]]
    return result | {key: row[key] for key in rest} | _flags(reason, in_test=True)


def _references(moment: Moment, seed: int) -> list[str]:
    rng = Random(f"gold/{seed}/{moment.moment_id}")
    chosen = rng.sample(families(), 2)
    return [describe(compliant(moment.slide, family, moment.plan.split, rng), moment.slide).text for family in chosen]


def build_corpus(settings: Settings) -> Corpus:
    """The whole corpus in memory, without keyframes. ValueError when it is too small for the card's proportions."""
    moments, cursor = build_moments(settings)
    corpus = Corpus(settings, moments, cursor=cursor)
    noise = Random(f"null/{settings.seed}")
    longer_wins, compliant_first = {"natural_flip": True, "natural_decided": False}, cycle((True, False))
    for moment in moments:
        if moment.plan.split == "train":
            for row, reason in _train_pairs(moment, settings):
                row["pair_id"] = f"p-{len(corpus.candidates) + len(corpus.test):05d}"
                if settings.null_labels and reason in ("construction", "a", "b"):
                    _unlabel(row, noise)
                flags = _flags(reason, in_test=False)
                corpus.candidates.append(row | flags)
                if flags["train_eligible"]:
                    corpus.train.append(row)
        else:
            for row in _test_pairs(moment, settings, longer_wins, compliant_first):
                row["pair_id"] = f"p-{len(corpus.candidates) + len(corpus.test):05d}"
                row.setdefault("judge", None)
                if settings.null_labels:
                    _unlabel(row, noise)
                corpus.test.append(row)
        kinds = moment.plan.types[0]
        references = _references(moment, settings.seed)
        corpus.gold.append(
            {"moment_id": moment.moment_id, "lecture": moment.plan.lecture, "type": kinds, "references": references}
        )
    corpus.candidates += [_as_candidate(row) for row in corpus.test]
    for row in corpus.test:
        del row["judge"], row["compliant"]
    return corpus


def chat_prompts(corpus: Corpus) -> list[Row]:
    """One chat prompt a moment, with its keyframes."""
    system = {"role": "system", "content": phrases()["context"]["system"]}
    rows = []
    for moment in corpus.moments:
        parts: list[Row] = [{"type": "image", "image": frame} for frame in moment.frames]
        parts.append({"type": "text", "text": moment.prompt})
        head = {"prompt_id": moment.prompt_id, "moment_id": moment.moment_id, "lecture": moment.plan.lecture}
        rows.append(head | {"type": moment.plan.types[0], "messages": [system, {"role": "user", "content": parts}]})
    return rows
