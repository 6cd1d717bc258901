"""The standard: rules_for_slides.yaml and files of its schema. The only place that knows their keys."""

import hashlib
import re
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from ad4edu_train.data.vocabulary import COMPONENTS, TYPES
from ad4edu_train.errors import DataError, UserError

RULES_FILE = "rules_for_slides.yaml"
Tier = Literal["mech", "local", "rubric"]
Severity = Literal["critical", "major", "minor"]
Claim = Literal["span", "text", "sequence"]
TIERS: tuple[Tier, ...] = get_args(Tier)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
_ID = re.compile(r"[A-Z]\d{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. `claims`: span = its finding is a phrase, charged once over all rules; text = it speaks of the whole text or a
    sentence and stands by itself; sequence = it needs all that a system said in a lecture."""

    id: str
    category: str
    tier: Tier
    severity: Severity
    claims: Claim
    text: str
    rationale: str
    sources: tuple[str, ...]
    applies_to: frozenset[str]
    not_applicable_when: str
    graded: bool
    check: str
    merged_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """The numbers of the standard. limits: spoken words by moment type. added_pause_s: seconds that a player may add, by ad_mode."""

    severity_weight: dict[str, float]
    speech_rate_wpm: float
    pause_tolerance: float
    ad_mode: str
    added_pause_s: dict[str, float]
    word_limit: dict[str, int]
    sentence_words: int
    list_items: int
    read_out_share: float
    read_out_ocr_tokens: int
    unusable_words: int
    unusable_characters: int
    novelty_full: float
    support_threshold: float
    contradiction_threshold: float
    similarity_low: float
    similarity_high: float
    round_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """A rules file, checked. sha256 is that of its bytes."""

    name: str
    version: str
    scoring: Scoring
    sources: dict[str, dict[str, Any]]
    rules: tuple[Rule, ...]
    sha256: str

    def of_tier(self, tier: Tier) -> tuple[Rule, ...]:
        """Rules that a tier checks: the local tier adds its own to the mechanical ones."""
        return tuple(rule for rule in self.rules if rule.tier == "mech" or rule.tier == tier)

    def categories(self, tier: Tier) -> tuple[str, ...]:
        """Categories that the tier scores; in the others it abstains."""
        own = {rule.category for rule in self.of_tier(tier) if rule.claims != "sequence"}
        return COMPONENTS if tier == "rubric" else tuple(name for name in COMPONENTS if name in own)

    def weight(self, severity: str) -> float:
        return self.scoring.severity_weight[severity]


def load_standard(path: str | Path | None = None) -> Standard:
    """The project's standard, or a file of the same schema. Raises DataError that lists everything wrong with it."""
    return _load(None if path is None else str(path))


@lru_cache(maxsize=8)
def _load(path: str | None) -> Standard:
    import yaml

    if path is None:
        name, content = RULES_FILE, resources.files("ad4edu_train.scoring").joinpath(RULES_FILE).read_bytes()
    else:
        name = path
        try:
            content = Path(path).expanduser().read_bytes()
        except (OSError, RuntimeError) as error:
            raise UserError(f"--rules {path}: {getattr(error, 'strerror', None) or error}.") from None
    try:
        # The C loader reads the file ten times faster; both are safe loaders.
        values = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DataError(f"{name} is no YAML: {error}") from None
    problems: list[str] = []
    standard = _standard(values, hashlib.sha256(content).hexdigest(), problems)
    if problems or standard is None:
        raise DataError("\n".join([f"{name} is no rules file that can score:", *(f"  {line}" for line in problems[:20])]))
    return standard


def _standard(values: Any, digest: str, problems: list[str]) -> Standard | None:
    if not isinstance(values, dict):
        problems.append("it is not a map with the keys standard, version, scoring, sources, rules")
        return None
    rows, sources = values.get("rules"), values.get("sources")
    if not isinstance(sources, dict) or not all(isinstance(one, dict) for one in sources.values()):
        problems.append("sources is not a map of sources")
        sources = {}
    if not isinstance(rows, list) or not rows:
        problems.append("rules is not a list of rules")
        rows = []
    rules = [rule for number, row in enumerate(rows, start=1) if (rule := _rule(number, row, sources, problems))]
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            problems.append(f"rule {rule.id} stands there twice")
        seen.add(rule.id)
    scoring = _scoring(values.get("scoring"), problems)
    if scoring is None:
        return None
    return Standard(
        name=str(values.get("standard", "")),
        version=str(values.get("version", "")),
        scoring=scoring,
        sources=sources,
        rules=tuple(rules),
        sha256=digest,
    )


def _rule(number: int, row: Any, sources: dict[str, Any], problems: list[str]) -> Rule | None:
    if not isinstance(row, dict):
        problems.append(f"rule {number} is not a map")
        return None
    where = f"rule {row.get('id', number)}"
    found = len(problems)
    for key in ("id", "category", "tier", "severity", "claims", "text", "rationale", "not_applicable_when", "check"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            problems.append(f"{where}: {key} is missing or no text")
    closed = {"category": COMPONENTS, "tier": TIERS, "severity": SEVERITIES, "claims": get_args(Claim)}
    for key, allowed in closed.items():
        if isinstance(row.get(key), str) and row[key] not in allowed:
            problems.append(f"{where}: {key} is {row[key]}, not one of {', '.join(allowed)}")
    if isinstance(row.get("id"), str) and not _ID.fullmatch(row["id"]):
        problems.append(f"{where}: an id is a letter and two digits, such as S01")
    if not isinstance(row.get("graded"), bool):
        problems.append(f"{where}: graded is not true or false")
    for key, known in (("sources", sources), ("applies_to", TYPES)):
        value = row.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
            problems.append(f"{where}: {key} is not a list of names")
        elif unknown := [one for one in value if one not in known]:
            problems.append(f"{where}: {key} names {', '.join(unknown)}, which is not known")
    if unknown_keys := set(map(str, row)) - {field.name for field in fields(Rule)}:
        problems.append(f"{where}: unknown key {', '.join(sorted(unknown_keys))}")
    if len(problems) > found:
        return None
    values = row | {"sources": tuple(row["sources"]), "applies_to": frozenset(row["applies_to"])}
    return Rule(**values | {"merged_from": tuple(row.get("merged_from") or ())})


def _scoring(values: Any, problems: list[str]) -> Scoring | None:
    if not isinstance(values, dict):
        problems.append("scoring is not a map")
        return None
    expected = {
        "severity_weight": SEVERITIES,
        "added_pause_s": ("standard", "hybrid", "extended"),
        "word_limit": (*TYPES, "unknown"),
    }
    found = len(problems)
    names = [field.name for field in fields(Scoring)]
    for name in names:
        value = values.get(name)
        if name == "ad_mode":
            if value not in expected["added_pause_s"]:
                problems.append(f"scoring.ad_mode is {value}, not one of {', '.join(expected['added_pause_s'])}")
        elif name in expected:
            if not isinstance(value, dict) or set(value) != set(expected[name]) or not all(map(_is_number, value.values())):
                problems.append(f"scoring.{name} is not a map of numbers with the keys {', '.join(expected[name])}")
        elif not _is_number(value):
            problems.append(f"scoring.{name} is {value}, not a number >= 0")
    if len(problems) > found:
        return None
    return Scoring(**{name: values[name] for name in names})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
