"""Descriptions that synthetic families write of a slide, and what each conveys.

A family only fixes the wording. How well it does is drawn anew at every moment, so name and style say little about quality.
"""

from dataclasses import dataclass, replace
from random import Random

from ad4edu_train.demo.facts import KINDS, Fact, Slide, corrupted
from ad4edu_train.demo.phrasing import fact_slots, families, fill, phrases, with_words

WORDS_PER_SECOND = 2.9
FAMILY_MEAN = 0.06  # spread of family quality over all moments, in standard deviations of one moment's quality


@dataclass(frozen=True)
class Clause:
    """A stated fact and how it stands: `new`, `said` (the lecturer said it) or `false`."""

    fact: Fact
    standing: str
    template: int


@dataclass(frozen=True)
class Plan:
    """Everything that decides a text. `focus` is the named referent, `names` replaces entity names, `lead` opens the text."""

    family: str
    split: str
    focus: str
    focus_template: int
    clauses: tuple[Clause, ...]
    lead: str = ""
    lead_breaks_style: bool = False
    names: tuple[tuple[str, str], ...] = ()
    names_defect: str = ""
    tail: tuple[str, ...] = ()
    whole: str = ""


@dataclass(frozen=True)
class Conveyed:
    """What a listener gets from a text. referent: 1 right, 0 unnamed, -1 wrong; over_s: seconds beyond the pause."""

    referent: int
    new: int
    said: int
    false: int
    kinds: tuple[int, ...]
    words: int
    over_s: float
    style_fault: bool
    vague_term: bool


@dataclass(frozen=True)
class Description:
    family: str
    text: str
    conveyed: Conveyed


def render(plan: Plan, slide: Slide) -> str:
    """The text of a plan."""
    bank = phrases()["ads"][plan.split][plan.family]
    names = dict(plan.names)
    if plan.whole:
        return plan.whole
    sentences = [fill(bank["focus"][plan.focus_template], e=names.get(plan.focus, plan.focus), mark=slide.marker)]
    for clause in plan.clauses:
        slots = fact_slots(clause.fact, slide, names.get(clause.fact.entity))
        sentences.append(fill(bank[clause.fact.kind][clause.template], **slots))
    text = " ".join([*sentences, *plan.tail])
    return f"{plan.lead} {text}" if plan.lead else text


def describe(plan: Plan, slide: Slide) -> Description:
    """The plan's text with what it conveys, judged against the slide's facts."""
    text = render(plan, slide)
    standings = [clause.standing for clause in plan.clauses]
    unnamed = plan.names_defect == "deixis" and plan.focus in dict(plan.names)
    words = len(text.split())
    conveyed = Conveyed(
        referent=0 if unnamed or plan.whole else (1 if plan.focus == slide.focus_name else -1),
        new=0 if plan.whole else standings.count("new"),
        said=0 if plan.whole else standings.count("said"),
        false=0 if plan.whole else standings.count("false"),
        kinds=tuple(0 if plan.whole else sum(c.fact.kind == kind for c in plan.clauses) for kind in KINDS),
        words=words,
        over_s=max(0.0, words / WORDS_PER_SECOND - slide.pause_s),
        style_fault=plan.lead_breaks_style,
        vague_term=plan.names_defect == "terminology",
    )
    return Description(plan.family, text, conveyed)


def family_quality(moment_id: str, seed: int) -> dict[str, float]:
    """Quality of each family at a moment, in standard deviations."""
    rng = Random(f"quality/{seed}/{moment_id}")
    means = {family: Random(f"family/{seed}/{family}").gauss(0, FAMILY_MEAN) for family in families()}
    return {family: mean + rng.gauss(0, 1) for family, mean in means.items()}


def _standing(quality: float, rng: Random) -> str:
    good = min(max(0.46 + 0.27 * quality, 0.06), 0.92)
    return "new" if rng.random() < good else rng.choice(("said", "false"))


def _fact_of(standing: str, slide: Slide, used: set[Fact], rng: Random) -> Fact:
    """An unused fact of the wanted standing; the kinds are equally likely for all standings."""
    if standing == "false":
        pool = [fact for fact in slide.facts if fact not in used]
        return corrupted(rng.choice(pool), slide, rng)
    pool = slide.new_facts() if standing == "new" else slide.said_facts()
    fresh = [fact for fact in pool if fact not in used] or pool
    kind = rng.choice(sorted({fact.kind for fact in fresh}))
    return rng.choice([fact for fact in fresh if fact.kind == kind])


def candidate(slide: Slide, family: str, split: str, quality: float, rng: Random) -> Plan:
    """A family's description at this quality: referent right or not, facts new, said or false, now and then a broken rule."""
    fits = max(1, round((slide.pause_s * WORDS_PER_SECOND - 7) / 8))
    n_clauses = min(3, max(1, min(2, fits) + rng.choice((-1, 0, 0, 1, 1))))
    right = rng.random() < min(max(0.62 + 0.2 * quality, 0.1), 0.95)
    others = [item.name for item in slide.items if item.name != slide.focus_name]
    clauses: list[Clause] = []
    used: set[Fact] = set()
    for _ in range(n_clauses):
        standing = _standing(quality, rng)
        fact = _fact_of(standing, slide, used, rng)
        used.add(fact)
        clauses.append(Clause(fact, standing, rng.randrange(2)))
    focus = slide.focus_name if right else rng.choice(others)
    plan = Plan(family, split, focus, rng.randrange(2), tuple(clauses))
    return _with_habit(plan, rng)


def _with_habit(plan: Plan, rng: Random) -> Plan:
    """Some texts open with a phrase, fewer break a rule of style, naming or terminology."""
    openings = phrases()["openings"][plan.split]
    chance = rng.random()
    if chance < 0.12:
        return replace(plan, lead=rng.choice(openings["plain"]))
    if chance < 0.16:
        return replace(plan, lead=rng.choice(openings["style"] + openings["past"]), lead_breaks_style=True)
    for defect, limit in (("deixis", 0.20), ("terminology", 0.23)):
        if chance < limit:
            bank = phrases()[defect][plan.split]
            word = with_words(bank["trigger"] + bank["plain"], len(plan.focus.split()), rng)
            return replace(plan, names=((plan.focus, word),), names_defect=defect)
    return plan


def compliant(slide: Slide, family: str, split: str, rng: Random) -> Plan:
    """A description that names the referent, adds only new facts and fits the pause where two sentences can."""
    fits = max(1, round((slide.pause_s * WORDS_PER_SECOND - 8) / 8))
    pool = slide.new_facts()
    facts = rng.sample(pool, min(len(pool), min(fits, rng.choice((2, 2, 3)))))
    clauses = tuple(Clause(fact, "new", rng.randrange(2)) for fact in facts)
    plan = Plan(family, split, slide.focus_name, rng.randrange(2), clauses)
    while len(plan.clauses) > 1 and describe(plan, slide).conveyed.over_s > 0:
        plan = replace(plan, clauses=plan.clauses[:-1])
    return plan
