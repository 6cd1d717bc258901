"""The second card: DataSmith-Preference-HumanEval, comparisons of two systems with one or more judgments each."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from ad4edu_train.data import card, checks
from ad4edu_train.data.describe import Cells, Difference, Table
from ad4edu_train.data.inspection import read_rows
from ad4edu_train.data.messages import MessageError, read_messages
from ad4edu_train.data.problems import Problems
from ad4edu_train.data.rows import RowError, shown

ASPECTS = ("naturalness", "cultural_appropriateness", "instruction_following", "coherence", "overall")
PREFERENCES = ("strong_smith", "smith", "teacher", "strong_teacher", "tie_both_good", "tie_both_bad")
MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """One evaluator's preferences; `preferences` maps aspect -> preference value. Duration in milliseconds."""

    annotator_id: str
    session_id: str
    duration_ms: int
    preferences: dict[str, str]
    comment: str
    instance_feedback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two conversations written from one English seed prompt, and the judgments on them."""

    id: str
    language: str
    source: str
    seed_prompt: str
    smith: list[dict[str, Any]]
    teacher: list[dict[str, Any]]
    judgments: list[Judgment]


@dataclass
class Comparisons:
    """Counts over the comparisons, taken in one pass."""

    comparisons: int = 0
    by_language: Counter[str] = field(default_factory=Counter)
    judgments_by_language: Counter[str] = field(default_factory=Counter)
    by_source: Counter[str] = field(default_factory=Counter)
    preferences: Counter[tuple[str, str]] = field(default_factory=Counter)
    annotators: set[str] = field(default_factory=set)
    durations_ms: list[int] = field(default_factory=list)
    judged_twice: int = 0

    @property
    def judgments(self) -> int:
        return self.judgments_by_language.total()

    def median_minutes(self) -> float | None:
        return round(median(self.durations_ms) / MINUTE_MS, 1) if self.durations_ms else None

    def add(self, row: Comparison) -> None:
        self.comparisons += 1
        self.by_language[row.language] += 1
        self.judgments_by_language[row.language] += len(row.judgments)
        self.by_source[row.source] += 1
        self.judged_twice += len(row.judgments) > 1
        for judgment in row.judgments:
            self.annotators.add(judgment.annotator_id)
            self.durations_ms.append(judgment.duration_ms)
            self.preferences.update(judgment.preferences.items())


def comparison(values: dict[str, Any]) -> Comparison:
    """Typed row of the card. Raises RowError with the column's name."""
    annotations = values.get("annotations")
    if not isinstance(annotations, list) or not annotations:
        raise RowError("annotations is empty: every comparison on the card has a judgment")
    return Comparison(
        id=_text(values, "id"),
        language=_text(values, "language"),
        source=_text(values, "source"),
        seed_prompt=_text_or_empty(values, "seed_prompt"),
        smith=_conversation(values, "smith_messages"),
        teacher=_conversation(values, "teacher_messages"),
        judgments=[_judgment(annotation) for annotation in annotations],
    )


def read_comparisons(paths: list[Path], problems: Problems) -> Iterator[tuple[Path, int, Comparison]]:
    """Typed rows with their places; bad rows and repeated ids go to `problems`."""
    seen: set[str] = set()
    for path in paths:
        for row, typed in read_rows(path, comparison, problems):
            if typed.id in seen:
                problems.add(path, checks.DUPLICATE_ID, row, typed.id)
            seen.add(typed.id)
            yield path, row, typed


def tables(found: Comparisons) -> Iterator[Table]:
    rows: list[Cells] = [
        (language, found.by_language[language], found.judgments_by_language[language]) for language in sorted(found.by_language)
    ]
    rows.append(("all", found.comparisons, found.judgments))
    minutes = found.median_minutes()
    note = (
        f"Evaluators: {len(found.annotators)}. Median time a judgment: {'-' if minutes is None else minutes} min. "
        f"Comparisons with more than one judgment: {found.judged_twice}."
    )
    yield Table("Languages", ("language", "comparisons", "judgments"), rows, note)
    yield Table("Sources", ("source", "comparisons"), sorted(found.by_source.items()))
    preferences: list[Cells] = [(aspect, *(found.preferences[aspect, value] for value in PREFERENCES)) for aspect in ASPECTS]
    yield Table("Preferences (judgments)", ("aspect", *PREFERENCES), preferences)


def card_differences(found: Comparisons) -> Iterator[Difference]:
    """Each figure of the DataSmith card that the data differ from."""
    figures: list[tuple[str, float, float]] = [
        ("comparisons", card.DATASMITH_TOTAL[0], found.comparisons),
        ("judgments", card.DATASMITH_TOTAL[1], found.judgments),
        ("evaluators", card.DATASMITH_EVALUATORS, len(found.annotators)),
        ("median minutes a judgment", card.DATASMITH_MEDIAN_MINUTES, found.median_minutes() or 0),
    ]
    for language, (comparisons, judgments) in card.DATASMITH_LANGUAGES.items():
        figures.append((f"{language}, comparisons", comparisons, found.by_language[language]))
        figures.append((f"{language}, judgments", judgments, found.judgments_by_language[language]))
    sizes = sorted(found.by_source.values(), reverse=True)[:2]
    for rank, expected in enumerate(card.DATASMITH_SOURCES):
        figures.append((f"source number {rank + 1} by size", expected, sizes[rank] if rank < len(sizes) else 0))
    yield from (Difference(*figure) for figure in figures if figure[1] != figure[2])


def _conversation(values: dict[str, Any], name: str) -> list[dict[str, Any]]:
    try:
        return read_messages(values.get(name))
    except MessageError as error:
        raise RowError(f"{name} {error}") from None


def _judgment(annotation: Any) -> Judgment:
    if not isinstance(annotation, dict):
        raise RowError("annotations holds something that is no struct")
    preferences = {}
    for aspect in ASPECTS:
        value = annotation.get(f"preference_{aspect}")
        if value not in PREFERENCES:
            raise RowError(f"preference_{aspect} is {shown(value)}; expected one of {', '.join(PREFERENCES)}")
        preferences[aspect] = value
    duration = annotation.get("duration_ms")
    if isinstance(duration, bool) or not isinstance(duration, int) or not 0 <= duration < 1e12:
        raise RowError(f"duration_ms is {shown(duration)}, not milliseconds")
    return Judgment(
        annotator_id=_text(annotation, "annotator_id"),
        session_id=_text(annotation, "session_id"),
        duration_ms=duration,
        preferences=preferences,
        comment=_text_or_empty(annotation, "comment"),
        instance_feedback=_text_or_empty(annotation, "instance_feedback"),
    )


def _text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value:
        raise RowError(f"{name} is {shown(value)}, not text")
    return value


def _text_or_empty(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise RowError(f"{name} is {shown(value)}, not text")
    return value or ""
