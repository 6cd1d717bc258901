"""The arithmetic of a score: findings, components, rating. Mechanical tier; the other tiers bring their own hits or components."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ad4edu_train.data.vocabulary import COMPONENTS
from ad4edu_train.errors import DataError
from ad4edu_train.scoring.checks import MECHANICAL, PHRASES, UNNAMED
from ad4edu_train.scoring.checks.phrases import Hit, whole
from ad4edu_train.scoring.moment import Moment, moment_from
from ad4edu_train.scoring.novelty import novelties, renamed
from ad4edu_train.scoring.standard import Rule, Standard, Tier, load_standard
from ad4edu_train.scoring.text import Text

_DECLINED = re.compile(
    r"\W*no (?:further |additional |audio |extra )?descriptions? (?:is |are )?(?:needed|necessary"
    r"|required)\W*",
    re.IGNORECASE,
)
_NOT_LATIN = re.compile("[^\\W\\d_\u0041-\u024f\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff\uff21-\uff5a]")
_LETTER = re.compile(r"[^\W\d_]")

Charge = tuple[Rule, Hit]


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule: characters [start, end) of the given text, and what it took from its category (0: charged elsewhere)."""

    rule: str
    start: int
    end: int
    cost: float
    severity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A description's compliance. rating and components in [0, 1]; None = unscored, or the tier abstains on that category."""

    rating: float | None
    components: dict[str, float | None]
    findings: tuple[Finding, ...]
    scorer_id: str
    rules_sha256: str

    @property
    def critical(self) -> int:
        """Critical violations that were charged; a graded rule (a pause overrun) counts once half of its weight is lost."""
        return sum(finding.severity == "critical" and finding.cost >= 0.5 for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceScore:
    """A description scored within its system's sequence: `score` by itself, `system_score` after novelty.

    declined: the description says that none is needed; it then has no system score.
    """

    score: Score
    novelty: float
    system_score: float | None
    declined: bool


def scorer_id(standard: Standard, tier: Tier, models: str = "") -> str:
    """Names the scorer of a rating: standard, version and tier, and the models where the tier has any."""
    return "/".join(part for part in (standard.name, standard.version, tier, models) if part)


def score(ad: object, context: Moment | Mapping[str, Any] | None = None, *, standard: Standard | None = None) -> Score:
    """Mechanical compliance of one description. Anything that is no text is scored as empty text; it never raises for content."""
    standard = standard or load_standard()
    moment = context if isinstance(context, Moment) else moment_from(context)
    text = Text(ad if isinstance(ad, str) else "", moment.ocr_trigrams)
    return assemble(text, moment, standard, "mech", mechanical(text, moment, standard))


def score_many(
    ads: Sequence[object], contexts: Sequence[Moment | Mapping[str, Any] | None], *, standard: Standard | None = None
) -> list[Score]:
    """`score` of each description with its context; one context object shared by many is prepared once."""
    standard = standard or load_standard()
    return [score(ad, context, standard=standard) for ad, context in zip(ads, contexts, strict=True)]


def score_sequence(
    ads: Sequence[str],
    contexts: Sequence[Moment | Mapping[str, Any] | None],
    *,
    standard: Standard | None = None,
    scores: Sequence[Score] | None = None,
) -> list[SequenceScore]:
    """Scores of what one system said in one lecture, in lecture order, with novelty and one name for one thing.

    `scores` are those of another tier, where there are any. Each sample of a system is a sequence of its own.
    """
    standard = standard or load_standard()
    moments = [context if isinstance(context, Moment) else moment_from(context) for context in contexts]
    scores = score_many(ads, moments, standard=standard) if scores is None else scores
    declined = [declines(ad) for ad in ads]
    # A declined moment says nothing, so it repeats nothing and is repeated by nothing.
    spoken = iter(novelties([ad for ad, none in zip(ads, declined, strict=True) if not none]))
    novelty = [1.0 if none else next(spoken) for none in declined]
    rule = next((rule for rule in standard.rules if rule.claims == "sequence" and rule.tier == "mech"), None)
    names = renamed([Text(ad) for ad in ads], moments) if rule else [None] * len(ads)
    result = []
    for one, none, fresh, hit in zip(scores, declined, novelty, names, strict=True):
        if rule and hit and not none:
            one = _with_charge(one, rule, hit, standard)
        full = standard.scoring.novelty_full
        factor = min(1.0, fresh / full) if full else 1.0
        total = None if none or one.rating is None else round(one.rating * factor, standard.scoring.round_to)
        result.append(
            SequenceScore(score=one, novelty=round(fresh, standard.scoring.round_to), system_score=total, declined=none)
        )
    return result


def mechanical(text: Text, moment: Moment, standard: Standard) -> list[Charge]:
    """Every hit of the mechanical rules."""
    if unusable(text, standard):
        return _unusable_hits(text, standard)
    declined = declines(text.raw)
    found: list[Charge] = []
    for rule in standard.rules:
        if rule.tier != "mech" or rule.claims == "sequence" or (declined and rule.id != "D06"):
            continue
        if rule.category == "deixis" and moment.cursor is False:
            continue
        if moment.moment_type not in rule.applies_to and moment.moment_type != "unknown":
            continue
        check = MECHANICAL.get(rule.id)
        if check is None:
            raise DataError(
                f"rule {rule.id} of the standard {standard.name} is of the mech tier, but there is no check of that id."
            )
        for hit in check(text, moment, standard.scoring):
            found.append((rule, hit))
    reason = next((hit for rule, hit in found if rule.id in PHRASES and hit.phrase), None)
    if reason is None:
        return found
    return [
        (rule, replace(hit, start=reason.start, end=reason.end, phrase=True) if rule.id in UNNAMED else hit)
        for rule, hit in found
    ]


def assemble(text: Text, moment: Moment, standard: Standard, tier: Tier, charges: Iterable[Charge], models: str = "") -> Score:
    """Components and rating from the hits of a tier's rules."""
    findings = charge(charges, standard)
    lost = dict.fromkeys(COMPONENTS, 0.0)
    category = {rule.id: rule.category for rule in standard.rules}
    for finding in findings:
        lost[category[finding.rule]] += finding.cost
    nothing = unusable(text, standard)
    scored = standard.categories(tier)
    places = standard.scoring.round_to
    components: dict[str, float | None] = {
        name: (0.0 if nothing else round(max(0.0, 1 - lost[name]), places)) if name in scored else None for name in COMPONENTS
    }
    if moment.cursor is False:
        components["deixis"] = None
    return Score(
        rating=mean_rating(components, places),
        components=components,
        findings=findings,
        scorer_id=scorer_id(standard, tier, models),
        rules_sha256=standard.sha256,
    )


def mean_rating(components: Mapping[str, float | None], places: int) -> float | None:
    """Mean of the components that are not None; None (unscored) where all are."""
    known = [value for value in components.values() if value is not None]
    return round(sum(known) / len(known), places) if known else None


def charge(charges: Iterable[Charge], standard: Standard) -> tuple[Finding, ...]:
    """What each hit costs. A phrase is charged once over all rules that claim spans: to the most severe, in file order among equals."""
    order = {rule.id: k for k, rule in enumerate(standard.rules)}
    ranked = sorted(
        charges,
        key=lambda one: (-standard.weight(one[1].severity or one[0].severity), order[one[0].id], one[1].start, one[1].end),
    )
    claimed: list[tuple[int, int, str]] = []
    charged: dict[str, float] = {}
    findings = []
    for rule, hit in ranked:
        severity = hit.severity or rule.severity
        cost = 0.0
        claims = rule.claims == "span" and hit.phrase
        mine = not claims or not any(start < hit.end and hit.start < end and owner != rule.id for start, end, owner in claimed)
        if mine:
            if claims:
                claimed.append((hit.start, hit.end, rule.id))
            before = charged.get(rule.id, 0.0)
            amount = min(1.0 - before, hit.amount) if rule.graded else (0.0 if before else hit.amount)
            charged[rule.id] = before + amount
            cost = round(standard.weight(severity) * amount, standard.scoring.round_to)
        findings.append(Finding(rule.id, hit.start, hit.end, cost, severity))
    return tuple(sorted(findings, key=lambda one: (order[one.rule], one.start, one.end)))


def unusable(text: Text, standard: Standard) -> bool:
    """Empty, not one word, mostly another script than Latin, or far too long."""
    scoring = standard.scoring
    if len(text.raw) > scoring.unusable_characters or not text.words:
        return True
    if len(text.all_words) > scoring.unusable_words or text.n_spoken > scoring.unusable_words:
        return True
    if text.raw.isascii():
        return False
    letters = len(_LETTER.findall(text.raw))
    return 2 * len(_NOT_LATIN.findall(text.raw)) > letters or (not letters and not any(c.isdigit() for c in text.raw))


def declines(ad: str) -> bool:
    """Is the description "No description needed."? A valid output: it says that the moment needs none."""
    return len(ad) < 80 and _DECLINED.fullmatch(ad) is not None


def _unusable_hits(text: Text, standard: Standard) -> list[Charge]:
    """An unusable text breaks the rule against saying nothing, or the one on length."""
    long = len(text.raw) > standard.scoring.unusable_characters or len(text.all_words) > standard.scoring.unusable_words
    wanted = "L02" if long or (text.words and text.raw.isascii()) else "L03"
    return [(rule, whole(text)) for rule in standard.rules if rule.id == wanted and rule.tier == "mech"]


def _with_charge(one: Score, rule: Rule, hit: Hit, standard: Standard) -> Score:
    """The score after a sequence rule took its weight from its category."""
    places = standard.scoring.round_to
    cost = standard.weight(rule.severity)
    components = dict(one.components)
    before = components[rule.category]
    if before is not None:
        components[rule.category] = round(max(0.0, before - cost), places)
    return Score(
        rating=mean_rating(components, places),
        components=components,
        findings=(*one.findings, Finding(rule.id, hit.start, hit.end, cost, rule.severity)),
        scorer_id=one.scorer_id,
        rules_sha256=one.rules_sha256,
    )
