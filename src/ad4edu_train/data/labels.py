"""Other people's labels: pairs with one or more raters, read through a mapping (`label_mapping`) into typed rows."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ad4edu_train.data import checks
from ad4edu_train.data.files import Record, Unreadable, sha256_of_file
from ad4edu_train.data.label_mapping import Mapping, Vote, Voter, label_text, read_mapping
from ad4edu_train.data.problems import Problems
from ad4edu_train.data.rows import RowError, shown
from ad4edu_train.data.tables import read_table
from ad4edu_train.errors import DataError

SWAPPED = " (sides swapped)"
_ABSENT = object()
_FLIPPED: dict[Vote | None, Vote | None] = {"first": "second", "second": "first"}
_ADVICE = "No vote is guessed: mend the file, or name the value in the mapping under first, second, tie or unparsed."


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """One pair. `votes` maps each rater and judge (and judge + SWAPPED) to its vote about the sides as they stand here."""

    pair_id: str
    cluster: str
    first: str | None
    second: str | None
    votes: dict[str, Vote | None]


@dataclass(frozen=True, kw_only=True)
class LabelSet:
    """Pairs with the names of those who voted. `swapped` holds the judges that were asked in both orders."""

    pairs: list[LabelledPair]
    raters: list[str]
    judges: list[str]
    swapped: list[str]
    digests: dict[str, str]


def read_labels(path: Path) -> LabelSet:
    """Read the files that the mapping at `path` names.

    Raises DataError that lists each row with a value outside the vocabulary, an id that stands twice, or files whose pairs differ.
    """
    mapping = read_mapping(path)
    main = path.parent / Path(mapping.file).expanduser()
    files: dict[Path, str | None] = {main: mapping.pair_id}
    voters: dict[Path, dict[str, Voter]] = {main: {}}
    for name, voter in mapping.voters().items():
        file = path.parent / Path(voter.file).expanduser() if voter.file else main
        column = voter.pair_id or mapping.pair_id
        if files.setdefault(file, column) != column:
            raise DataError(f"{path}: {name} joins {file.name} on another pair_id than those before it. One file has one id.")
        voters.setdefault(file, {})[name] = voter
    problems = Problems()
    tables = {file: _read_table(file, column, mapping, voters[file], main == file, problems) for file, column in files.items()}
    problems.raise_if_any(_ADVICE)
    pairs = tables.pop(main)
    if not pairs:
        raise DataError(f"{main} holds no pairs.")
    for file, rows in tables.items():
        _refuse_other_pairs(main, pairs, file, rows)
        for pair_id, row in rows.items():
            pairs[pair_id].votes.update(row.votes)
    return LabelSet(
        pairs=list(pairs.values()),
        raters=list(mapping.raters),
        judges=list(mapping.judges),
        swapped=[name for name, judge in mapping.judges.items() if judge.swapped],
        digests=_digests(files),
    )


def _read_table(
    path: Path, id_column: str | None, mapping: Mapping, voters: dict[str, Voter], main: bool, problems: Problems
) -> dict[str, LabelledPair]:
    columns = [column for voter in voters.values() for column in (voter.column, voter.swapped) if column]
    columns += [id_column] if id_column else []
    if main:
        columns += [*mapping.cluster, *(column for column in (mapping.first, mapping.second) if column)]
    meanings = {name: mapping.meanings(voter) for name, voter in voters.items()}
    pairs: dict[str, LabelledPair] = {}
    for record in read_table(path):
        problems.rows_read[path] = problems.rows_read.get(path, 0) + 1
        if isinstance(record, Unreadable):
            problems.add(path, checks.UNREADABLE, record.row, "", record.reason)
            continue
        if problems.rows_read[path] == 1:
            _refuse_missing_columns(path, record.values, columns)
        try:
            pair = _pair(record, id_column, mapping if main else None, voters, meanings)
        except RowError as error:
            problems.add(path, "a value cannot be used", record.row, "", str(error))
            continue
        if pair.pair_id in pairs:
            problems.add(path, checks.DUPLICATE_ID, record.row, pair.pair_id)
        pairs[pair.pair_id] = pair
    return pairs


def _pair(
    record: Record,
    id_column: str | None,
    mapping: Mapping | None,
    voters: dict[str, Voter],
    meanings: dict[str, dict[str, Vote]],
) -> LabelledPair:
    """Typed row; `mapping` is None for a judge's own file, which holds votes alone."""
    pair_id = label_text(_get(record.values, id_column)) if id_column else str(record.row)
    if not pair_id:
        raise RowError(f"{id_column} is empty")
    votes: dict[str, Vote | None] = {}
    for name, voter in voters.items():
        votes[name] = _vote(record.values, voter.column, meanings[name])
        if voter.swapped:
            vote = _vote(record.values, voter.swapped, meanings[name])
            votes[name + SWAPPED] = _FLIPPED.get(vote, vote) if voter.swapped_says == "position" else vote
    cluster = [label_text(_get(record.values, column)) for column in mapping.cluster] if mapping else []
    first, second = (_side(record.values, column) for column in (mapping.first, mapping.second)) if mapping else (None, None)
    return LabelledPair(
        pair_id=pair_id, cluster="\0".join(cluster) if cluster else pair_id, first=first, second=second, votes=votes
    )


def _vote(values: dict[str, Any], column: str, meanings: dict[str, Vote]) -> Vote | None:
    text = label_text(_get(values, column))
    if not text:
        return None
    if text not in meanings:
        raise RowError(f"{column} is {shown(text)}; the mapping knows {', '.join(map(repr, meanings))}")
    return meanings[text]


def _side(values: dict[str, Any], column: str | None) -> str | None:
    if column is None:
        return None
    text = _get(values, column)
    # A text such as "True" or "12" comes back from a writer that guesses types as a truth value or a number.
    if not isinstance(text, str | int | float):
        raise RowError(f"{column} is {shown(text)}, not text")
    return str(text)


def _get(values: dict[str, Any], column: str) -> Any:
    found = _find(values, column)
    if found is _ABSENT:
        raise RowError(f"column {column} is missing")
    return found


def _find(values: Any, column: str) -> Any:
    """The value at a column or a dotted path; _ABSENT where there is none. A key with dots in it comes first."""
    if isinstance(values, dict) and column in values:
        return values[column]
    for part in column.split("."):
        if isinstance(values, dict) and part in values:
            values = values[part]
        elif isinstance(values, list) and part.isdecimal() and int(part) < len(values):
            values = values[int(part)]
        else:
            return _ABSENT
    return values


def _refuse_missing_columns(path: Path, values: dict[str, Any], columns: list[str]) -> None:
    missing = [column for column in dict.fromkeys(columns) if _find(values, column) is _ABSENT]
    if missing:
        raise DataError(
            f"{path} has no column {', '.join(missing)}, which the mapping names. Its columns: {', '.join(map(str, values))}."
        )


def _refuse_other_pairs(main: Path, pairs: dict[str, LabelledPair], file: Path, rows: dict[str, LabelledPair]) -> None:
    absent, more = [name for name in pairs if name not in rows], [name for name in rows if name not in pairs]
    if absent or more:
        raise DataError(
            f"{file} and {main} hold different pairs: {len(absent)} of {main.name} are not in {file.name}"
            f"{' (first: ' + shown(absent[0]) + ')' if absent else ''}, {len(more)} the other way round"
            f"{' (first: ' + shown(more[0]) + ')' if more else ''}. Shares of different pairs cannot be compared."
        )


def _digests(files: Iterable[Path]) -> dict[str, str]:
    """sha256 by file name, with its folder where two files have one name."""
    names = Counter(file.name for file in files)
    return {file.name if names[file.name] == 1 else f"{file.parent.name}/{file.name}": sha256_of_file(file) for file in files}
