"""Constructed pairs: a compliant description and the same one with a single axis of the standard broken.

What is changed follows from the axis's meaning. Some compliant sides quote a trigger phrase from the slide, some defects come
without any trigger, and word counts match except on the length axis.
"""

from dataclasses import dataclass, replace
from random import Random

from ad4edu_train.demo.candidates import Clause, Description, Plan, compliant, describe
from ad4edu_train.demo.facts import Fact, Slide, corrupted
from ad4edu_train.demo.phrasing import fill, phrases, with_words

QUOTES = 0.6  # share of slides with a caption on which both sides quote it
NO_TRIGGER = 0.35  # share of defects without a trigger phrase, where the axis has trigger phrases
OVERRUN_S = 2.5  # a description that is too long exceeds the pause by at least this


@dataclass(frozen=True)
class ConstructedPair:
    compliant: Description
    defective: Description
    what_differs: str


def construct(axis: str, slide: Slide, family: str, split: str, rng: Random) -> ConstructedPair:
    """A pair that differs on one axis."""
    base = compliant(slide, family, split, rng)
    if slide.caption and axis in ("deixis", "style", "terminology") and rng.random() < QUOTES:
        base = replace(base, lead=phrases()["openings"]["quote"][0].format(caption=slide.caption))
    good, bad, what = PERTURBATIONS[axis](base, slide, rng)
    return ConstructedPair(describe(good, slide), describe(bad, slide), f"{axis}: {what}")


def _deixis(base: Plan, slide: Slide, rng: Random) -> tuple[Plan, Plan, str]:
    bank = phrases()["deixis"][base.split]
    kind = "plain" if rng.random() < NO_TRIGGER else "trigger"
    word = with_words(bank[kind], len(base.focus.split()), rng)
    bad = replace(base, names=((base.focus, word),), names_defect="deixis")
    return base, bad, "points without naming the referent" if kind == "trigger" else "leaves the referent unnamed"


def _faithfulness(base: Plan, slide: Slide, rng: Random) -> tuple[Plan, Plan, str]:
    length = len(base.focus.split())
    others = [item.name for item in slide.items if item.name != base.focus and len(item.name.split()) == length]
    if others and rng.random() < 0.3:
        return base, replace(base, focus=rng.choice(others)), "names another entity as the referent"
    i = rng.randrange(len(base.clauses))
    clause = base.clauses[i]
    wrong = _nearest([corrupted(clause.fact, slide, rng) for _ in range(4)], clause.fact)
    clauses = (*base.clauses[:i], replace(clause, fact=wrong, standing="false"), *base.clauses[i + 1 :])
    names = {"rel": "relation", "val": "value", "pos": "position", "col": "colour"}
    return base, replace(base, clauses=clauses), f"a {names[clause.fact.kind]} contradicts the slide"


def _nearest(options: list[Fact], fact: Fact) -> Fact:
    """The option whose wording is closest in length to the fact's."""

    def words(one: Fact) -> int:
        return len(f"{one.entity} {one.value}".split())

    return min(options, key=lambda option: abs(words(option) - words(fact)))


def _length(base: Plan, slide: Slide, rng: Random) -> tuple[Plan, Plan, str]:
    bank = phrases()
    if rng.random() < 0.3:
        text = fill(rng.choice(bank["too_short"][base.split]), e=base.focus)
        return base, replace(base, whole=text), "far too short to tell what is shown"
    bad = base
    if rng.random() < 0.5:
        extra = [fact for fact in slide.new_facts() if fact not in {clause.fact for clause in base.clauses}]
        rng.shuffle(extra)
        for fact in extra:
            bad = replace(bad, clauses=(*bad.clauses, Clause(fact, "new", rng.randrange(2))))
            if describe(bad, slide).conveyed.over_s >= OVERRUN_S:
                return base, bad, "lists more than the pause can hold"
    padding = rng.sample(bank["padding"][base.split], len(bank["padding"][base.split]))
    for sentence in padding:
        bad = replace(bad, tail=(*bad.tail, sentence))
        if describe(bad, slide).conveyed.over_s >= OVERRUN_S:
            break
    return base, bad, "padding overruns the pause"


def _non_redundancy(base: Plan, slide: Slide, rng: Random) -> tuple[Plan, Plan, str]:
    free = slide.said_facts()
    clauses = []
    keeps = rng.randrange(len(base.clauses)) if len(base.clauses) > 1 and rng.random() < 0.5 else None
    for i, clause in enumerate(base.clauses):
        if i == keeps:
            clauses.append(clause)
            continue
        same_kind = [fact for fact in free if fact.kind == clause.fact.kind] or free
        said = _nearest(rng.sample(same_kind, len(same_kind)), clause.fact)
        free = [fact for fact in free if fact != said] or slide.said_facts()
        clauses.append(Clause(said, "said", clause.template))
    return (
        base,
        replace(base, clauses=tuple(clauses)),
        "repeats what the lecturer said instead of adding what the slide shows",
    )


def _style(base: Plan, slide: Slide, rng: Random) -> tuple[Plan, Plan, str]:
    bank = phrases()["openings"][base.split]
    kind = "past" if rng.random() < NO_TRIGGER else "style"
    fault = rng.choice(bank[kind])
    plain = with_words(bank["plain"], len(fault.split()), rng)
    good = replace(base, lead=f"{base.lead} {plain}".strip())
    bad = replace(base, lead=f"{base.lead} {fault}".strip(), lead_breaks_style=True)
    return good, bad, "past tense" if kind == "past" else "first person, opinion or talk about the image"


def _terminology(base: Plan, slide: Slide, rng: Random) -> tuple[Plan, Plan, str]:
    bank = phrases()["terminology"][base.split]
    elsewhere = [clause.fact.entity for clause in base.clauses if clause.fact.entity != base.focus]
    term = rng.choice(elsewhere or [base.focus])
    chance = rng.random()
    if chance < 0.25 and len(slide.hidden.name.split()) == len(term.split()):
        word, what = slide.hidden.name, "a term that is not on the slide replaces the lecture's term"
    else:
        kind = "plain" if chance < 0.25 + NO_TRIGGER else "trigger"
        word, what = with_words(bank[kind], len(term.split()), rng), "a vague word replaces the lecture's term"
    return base, replace(base, names=((term, word),), names_defect="terminology"), what


PERTURBATIONS = {
    "deixis": _deixis,
    "faithfulness": _faithfulness,
    "length": _length,
    "non_redundancy": _non_redundancy,
    "style": _style,
    "terminology": _terminology,
}
