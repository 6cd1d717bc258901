"""One pass over every file of a data set: rows checked, counted, compared across files, and kept where asked for."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ad4edu_train.data import checks
from ad4edu_train.data.files import Unreadable, read_records, sha256_of_file
from ad4edu_train.data.fingerprints import Fingerprints, IdColumn, fingerprint
from ad4edu_train.data.leakage import LeakageGuard
from ad4edu_train.data.lectures import moment_time, read_cursor_capability, read_subjects
from ad4edu_train.data.problems import Problems
from ad4edu_train.data.rows import (
    CandidatePair,
    ChatPrompt,
    Pair,
    RowError,
    candidate_pair,
    chat_prompt,
    gold_moment,
    human_pair,
    preference_pair,
    shown,
)
from ad4edu_train.data.sources import DataFiles
from ad4edu_train.data.tally import Tally

REBUILD = "\nThe two files come from different builds. Export both again."
NOT_ELIGIBLE = "the pair is not an eligible row of dpo_train.jsonl" + REBUILD
NOT_TRAINED = "an eligible row of dpo_train.jsonl is not in train_prefs" + REBUILD
NOT_IN_VAL = "the row of test_human is not in human_val_400.jsonl" + REBUILD
NOT_IN_TEST = "the row of human_val_400.jsonl is not in test_human" + REBUILD
NO_PROMPT = "the moment has no row in dpo_prompts.jsonl\nIt could not be sampled or trained with its keyframes."
PROMPT_DIFFERS = (
    "dpo_prompts.jsonl has this moment under another prompt_id\nText and keyframe prompt would not be of one moment."
)

PARSERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    # The human tables first: the leakage guard must know them before the training pairs pass.
    "test_human": human_pair,
    "human_val": human_pair,
    "candidates": candidate_pair,
    "train": preference_pair,
}


@dataclass
class Inspection:
    """What one pass found. `kept` holds typed rows of the tables that the caller asked for, bad rows left out."""

    problems: Problems = field(default_factory=Problems)
    tallies: dict[str, Tally] = field(default_factory=dict)
    kept: dict[str, list[Any]] = field(default_factory=dict)
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)
    digests: dict[str, str] = field(default_factory=dict)
    rows: Counter[str] = field(default_factory=Counter)
    cursor_capability: dict[str, bool] = field(default_factory=dict)
    moment_times: dict[str, float] = field(default_factory=dict)

    def shared_lectures(self) -> list[str]:
        """Lectures with pairs in both splits; the splits are disjoint by moment, not by lecture."""
        train, test = self.tallies.get("train"), self.tallies.get("test_human")
        return sorted(set(train.lectures()) & set(test.lectures())) if train and test else []


def inspect(files: DataFiles, *, keep: frozenset[str] = frozenset()) -> Inspection:
    """Read and check everything that `files` names; problems are gathered, not raised.

    `keep` names the tables whose rows are returned: train, test_human, prompts, gold.
    """
    found = Inspection()
    subjects = read_subjects(files)
    prompts = _scan_moments(files, found, keep)
    guard = LeakageGuard()
    columns: dict[str, IdColumn] = {}
    for name in PARSERS:
        if not files[name]:
            continue
        tally = found.tallies[name] = Tally(subject_of=subjects, by_moment=name in ("train", "test_human"))
        columns[name] = IdColumn()
        rows: list[tuple[Path, int, Pair]] = []
        for path, row, pair in _scan_pairs(files[name], PARSERS[name], found, columns[name]):
            tally.add(pair)
            if name in ("test_human", "human_val"):
                guard.learn(pair)
            elif name == "train":
                guard.check(pair, path, row, found.problems)
            if prompts is not None and name in ("train", "test_human"):
                prompts.check(pair, path, row, found.problems)
            if name in keep:
                rows.append((path, row, pair))
        found.rows[name] = tally.pairs
        _add_places(files[name], dict.fromkeys(columns[name].repeated(), ""), checks.DUPLICATE_ID, found.problems)
        if name in keep:
            found.kept[name] = rows
    _compare_files(files, columns, found.problems)
    for name in found.kept.keys() & PARSERS.keys():
        bad = {path: found.problems.bad_rows(path) for path in files[name]}
        found.kept[name] = [pair for path, row, pair in found.kept[name] if row not in bad[path]]
    found.cursor_capability = read_cursor_capability(files)
    for path in files["moment_order"]:
        found.moment_times.update(time for _, time in read_rows(path, moment_time, found.problems))
    found.digests = _digests([path for paths in files.files.values() for path in paths])
    return found


def read_rows(path: Path, parse: Callable[[dict[str, Any]], Any], problems: Problems) -> Iterator[tuple[int, Any]]:
    """(row, typed row) of a table; rows that cannot be read or typed go to `problems`."""
    for record in read_records(path):
        problems.rows_read[path] = problems.rows_read.get(path, 0) + 1
        if isinstance(record, Unreadable):
            problems.add(path, checks.UNREADABLE, record.row, _id_of(record.values), record.reason)
            continue
        try:
            yield record.row, parse(record.values)
        except RowError as error:
            problems.add(path, checks.SHAPE, record.row, _id_of(record.values), str(error))


def _scan_pairs(
    paths: list[Path], parse: Callable[[dict[str, Any]], Any], found: Inspection, column: IdColumn
) -> Iterator[tuple[Path, int, Any]]:
    """Pairs that can be typed, each with its place; what is wrong with one goes to `problems`, and it comes all the same."""
    for shard, path in enumerate(paths):
        for row, pair in read_rows(path, parse, found.problems):
            eligible = not isinstance(pair, CandidatePair) or pair.train_eligible
            for kind, detail in checks.check_pair(pair):
                found.problems.add(path, kind, row, pair.pair_id, detail)
            if isinstance(pair, CandidatePair) and eligible and pair.flags.get("has_direction") is False:
                found.problems.add(path, checks.DIRECTION, row, pair.pair_id)
            if eligible:
                found.unknown.update(checks.unknown_values(pair))
            column.add(shard, row, pair, compared=eligible)
            yield path, row, pair


class _Prompts:
    """Fingerprints of the moments of dpo_prompts.jsonl, and of their prompt_ids."""

    def __init__(self) -> None:
        self._moments = Fingerprints()
        self._pairs: set[int] = set()

    def add(self, prompt: ChatPrompt) -> bool:
        """False where the moment has this prompt_id already."""
        before = len(self._pairs)
        self._moments.add(fingerprint(prompt.moment_id))
        self._pairs.add(fingerprint(prompt.moment_id, prompt.prompt_id))
        return len(self._pairs) > before

    def check(self, pair: Pair, path: Path, row: int, problems: Problems) -> None:
        if fingerprint(pair.moment_id, pair.prompt_id) in self._pairs:
            return
        kind = PROMPT_DIFFERS if fingerprint(pair.moment_id) in self._moments else NO_PROMPT
        problems.add(path, kind, row, pair.pair_id, f"moment_id {pair.moment_id}")


def _scan_moments(files: DataFiles, found: Inspection, keep: frozenset[str]) -> _Prompts | None:
    """Read prompts and gold rows. Returns what the prompts cover; None where there is no such file."""
    prompts = _Prompts() if files["prompts"] else None
    for name, parse in (("prompts", chat_prompt), ("gold", gold_moment)):
        rows = []
        for path in files[name]:
            for row, typed in read_rows(path, parse, found.problems):
                found.rows[name] += 1
                if prompts is not None and isinstance(typed, ChatPrompt) and not prompts.add(typed):
                    found.problems.add(path, checks.REPEATED_MOMENT, row, "", f"moment_id {typed.moment_id}")
                elif name in keep:
                    rows.append(typed)
        if name in keep:
            found.kept[name] = rows
    return prompts


def _compare_files(files: DataFiles, columns: dict[str, IdColumn], problems: Problems) -> None:
    for name, other, kind in (
        ("train", "candidates", NOT_ELIGIBLE),
        ("candidates", "train", NOT_TRAINED),
        ("test_human", "human_val", NOT_IN_VAL),
        ("human_val", "test_human", NOT_IN_TEST),
    ):
        if name in columns and other in columns:
            _add_places(files[name], columns[name].places_not_in(columns[other]), kind, problems)


def _add_places(paths: list[Path], places: dict[tuple[int, int], str], kind: str, problems: Problems) -> None:
    """Name rows by their pair_id. The ids are read again: they are not kept, and this happens only when something is wrong."""
    for shard in sorted({shard for shard, _ in places}):
        for record in read_records(paths[shard]):
            if (shard, record.row) in places:
                problems.add(paths[shard], kind, record.row, _id_of(record.values), places[shard, record.row])


def _id_of(values: dict[str, Any]) -> str:
    name = values.get("pair_id") or values.get("id") or values.get("moment_id") or ""
    # What cannot be printed is escaped: an id may be the very text that is not valid.
    return (name if isinstance(name, str) else shown(name)).encode("utf-8", "backslashreplace").decode()


def _digests(paths: list[Path]) -> dict[str, str]:
    """sha256 by file name; by folder and file name where two files have one name. No user's path goes into a run record."""
    names = Counter(path.name for path in paths)
    return {path.name if names[path.name] == 1 else f"{path.parent.name}/{path.name}": sha256_of_file(path) for path in paths}
