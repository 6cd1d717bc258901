"""The card's tables, from the data: what `python -m ad4edu_train.data describe` prints. Pure: tallies in, tables out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ad4edu_train.data import card
from ad4edu_train.data.inspection import Inspection
from ad4edu_train.data.tally import Tally
from ad4edu_train.data.vocabulary import AXES, LABEL_SOURCES, RATERS, STRATA, TYPES, UNKNOWN_SUBJECT

Cells = tuple[str | int, ...]


@dataclass(frozen=True)
class Table:
    """A titled table; `rows` hold one cell a column."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Cells]
    note: str = ""


@dataclass(frozen=True)
class Difference:
    """A figure of the card that the data do not have."""

    figure: str
    on_card: float
    found: float


def tables(found: Inspection) -> Iterator[Table]:
    """Every table that the files at hand allow, in the card's order."""
    train, test = found.tallies.get("train", Tally()), found.tallies.get("test_human", Tally())
    yield _subjects(train, test)
    yield _by("Moment types", "type", TYPES, train, test, "A moment can carry pairs of several types.")
    yield _by("Axes", "axis", AXES, train, test)
    yield _by("Label sources", "label_source", (*LABEL_SOURCES, "none"), train, test)
    if test.pairs:
        yield _strata(test)
        yield _raters(test)
    if train.pairs and test.pairs:
        yield _seen_lectures(train, test)
    if train.judged:
        yield _judge(train, found.tallies.get("candidates"))
    if candidates := found.tallies.get("candidates"):
        yield _flags(candidates)
    yield Table("Rows read", ("file", "rows"), sorted(found.rows.items()))
    if found.unknown:
        rows = [(column, value, count) for (column, value), count in sorted(found.unknown.items())]
        yield Table("Values that the card does not know (kept)", ("column", "value", "pairs"), rows)


def card_differences(found: Inspection) -> Iterator[Difference]:
    """Each figure of the AD4Edu card that the data differ from."""
    for split, totals, by_subject in (
        ("train_prefs", card.TRAIN_TOTAL, card.TRAIN_BY_SUBJECT),
        ("test_human", card.TEST_TOTAL, card.TEST_BY_SUBJECT),
    ):
        tally = found.tallies.get("train" if split == "train_prefs" else split, Tally())
        yield from _compare(f"{split}, all", totals, (len(tally.lectures()), tally.moments, tally.pairs))
        for subject, expected in by_subject.items():
            yield from _compare(f"{split}, {subject}", expected, _subject_figures(tally, subject))
    train, test = found.tallies.get("train", Tally()), found.tallies.get("test_human", Tally())
    figures: list[tuple[str, int, int]] = [("lectures in both splits", card.SHARED_LECTURES, len(found.shared_lectures()))]
    for name, (pairs, moments, test_pairs) in card.BY_TYPE.items():
        figures.append((f"train_prefs, type {name}, pairs", pairs, train.by["type", name]))
        figures.append((f"train_prefs, type {name}, moments", moments, train.moments_by("type", name)))
        figures.append((f"test_human, type {name}, pairs", test_pairs, test.by["type", name]))
    for name, (pairs, moments) in card.BY_AXIS.items():
        figures.append((f"train_prefs, axis {name}, pairs", pairs, train.by["axis", name]))
        figures.append((f"train_prefs, axis {name}, moments", moments, train.moments_by("axis", name)))
    for name, pairs in card.BY_LABEL_SOURCE.items():
        figures.append((f"train_prefs, label_source {name}, pairs", pairs, train.by["label_source", name]))
    for name, pairs in card.BY_STRATUM.items():
        figures.append((f"test_human, stratum {name}, pairs", pairs, test.by["stratum", name]))
    same_family = train.by["same_family", "natural"]
    figures.append(("train_prefs, natural pairs of one family", card.SAME_FAMILY_NATURAL, same_family))
    figures.append(("test_human, pairs with labels pending", 0, test.by["labels_pending", "true"]))
    yield from (Difference(*figure) for figure in figures if figure[1] != figure[2])


def _compare(where: str, on_card: tuple[int, ...], found: tuple[int, ...]) -> Iterator[Difference]:
    for unit, expected, actual in zip(("lectures", "moments", "pairs"), on_card, found, strict=True):
        if expected != actual:
            yield Difference(f"{where}, {unit}", expected, actual)


def _subject_figures(tally: Tally, subject: str) -> tuple[int, int, int]:
    return len(tally.lectures(subject)), tally.moments_by("subject", subject), tally.by["subject", subject]


def _subjects(train: Tally, test: Tally) -> Table:
    subjects = sorted({*train.values("subject"), *test.values("subject")})
    rows = [(subject, *_subject_figures(train, subject), *_subject_figures(test, subject)) for subject in subjects]
    total = ("all", len(train.lectures()), train.moments, train.pairs, len(test.lectures()), test.moments, test.pairs)
    note = card.SUBJECT_NOTE
    if UNKNOWN_SUBJECT in subjects:
        note = "No subject is known for some lectures: the card has no subject column, give a map with data.subjects. " + note
    columns = ("subject", "train lectures", "train moments", "train pairs", "test lectures", "test moments", "test pairs")
    return Table("Subjects", columns, [*rows, total], note)


def _by(title: str, column: str, known: tuple[str, ...], train: Tally, test: Tally, note: str = "") -> Table:
    values = list(known) + sorted({*train.values(column), *test.values(column)} - set(known))
    rows = [
        (
            value,
            train.by[column, value],
            train.moments_by(column, value),
            test.by[column, value],
            test.moments_by(column, value),
        )
        for value in values
        if train.by[column, value] or test.by[column, value] or (value in known and value != "none")
    ]
    return Table(title, (column, "train pairs", "train moments", "test pairs", "test moments"), rows, note)


def _strata(test: Tally) -> Table:
    values = [*STRATA, *sorted(set(test.values("stratum")) - set(STRATA))]
    rows = [(value, test.by["stratum", value], test.moments_by("stratum", value)) for value in values]
    return Table("Strata of test_human", ("stratum", "pairs", "moments"), rows)


def _raters(test: Tally) -> Table:
    names = [*RATERS, *sorted({column for column, _ in test.by if column.startswith("machine_")}), "winner"]
    choices = ("option_a", "option_b", "tie", "none")
    rows: list[Cells] = [(name, *(test.by[name, choice] for choice in choices)) for name in names]
    pending = test.by["labels_pending", "true"]
    note = f"winner: majority of those who decided, none on an even split. Pairs with labels pending: {pending}."
    return Table("Rater coverage of test_human (pairs)", ("rater", *choices), rows, note)


def _seen_lectures(train: Tally, test: Tally) -> Table:
    seen = set(train.lectures())
    rows = []
    for subject in test.values("subject"):
        lectures = test.lectures(subject)
        counts = [sum(test.pairs_by_lecture[name] for name in lectures if (name in seen) == want) for want in (True, False)]
        rows.append(
            (subject, sum(name in seen for name in lectures), counts[0], sum(name not in seen for name in lectures), counts[1])
        )
    columns = ("subject", "lectures seen in train", "pairs", "lectures not seen", "pairs")
    return Table("Test pairs by subject and by lecture seen in train", columns, rows, "Moments are disjoint, lectures are not.")


def _judge(train: Tally, candidates: Tally | None) -> Table:
    longer, shorter = train.judged["longer"], train.judged["shorter"]
    rows: list[tuple[str | int, ...]] = [
        ("judge-labelled pairs here, the longer side (characters) chosen", longer, longer + shorter),
        ("natural pairs here with both sides of one family", train.by["same_family", "natural"], train.by["axis", "natural"]),
    ]
    if candidates and ("flag judge_flipped", "true") in candidates.by:
        flipped = candidates.by["flag judge_flipped", "true"]
        rows.append(("candidate pairs here whose verdict reversed under order swap", flipped, candidates.by["axis", "natural"]))
    return Table("Judge caveats", ("figure", "pairs", "of"), rows, card.JUDGE)


def _flags(candidates: Tally) -> Table:
    names = ["train_eligible", *sorted({column for column, _ in candidates.by if column.startswith("flag ")})]
    rows = [(name.removeprefix("flag "), candidates.by[name, "true"], candidates.by[name, "false"]) for name in names]
    return Table("Candidate pairs of dpo_train.jsonl", ("flag", "true", "false"), rows)
