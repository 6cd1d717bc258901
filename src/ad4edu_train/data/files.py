"""Records of a Parquet or JSONL file, one at a time, with the place each stands at. Memory does not grow with the file."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ad4edu_train.errors import DataError

LFS_MARK = b"version https://git-lfs.github.com/spec/"
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Record:
    """One row as it stands in a file. `row` counts from 1: the line of a JSONL file, the row of a Parquet file."""

    row: int
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that could not be read at all, and why."""

    row: int
    reason: str


def read_records(path: Path) -> Iterator[Record | Unreadable]:
    """Rows of a `.parquet`, `.jsonl` or `.json` (one object a line) file.

    Raises DataError for a file that holds no data at all: missing, a Git LFS pointer, no Parquet, no UTF-8.
    """
    with _open(path) as file:
        head = file.read(len(LFS_MARK))
    if head.startswith(LFS_MARK):
        raise DataError(f"{path} is a Git LFS pointer, not data. Run `git lfs pull` in its repository, or download the file.")
    if path.suffix == ".parquet":
        yield from _parquet(path, head)
    else:
        yield from _jsonl(path)


def sha256_of_file(path: Path) -> str:
    """Hex digest of the file's bytes."""
    with _open(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path) -> Any:
    """The one JSON value of a file (UTF-8, a BOM is allowed)."""
    with _open(path) as file:
        content = file.read()
    if content.startswith(LFS_MARK):
        raise DataError(f"{path} is a Git LFS pointer, not data. Run `git lfs pull` in its repository, or download the file.")
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path} is not valid JSON: {error}") from None


def _open(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None


def _parquet(path: Path, head: bytes) -> Iterator[Record]:
    import pyarrow
    import pyarrow.parquet

    if not head.startswith(b"PAR1"):
        raise DataError(f"{path} is not a Parquet file: it does not begin with PAR1. Download or export it again.")
    try:
        row = 0
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as table:
            for batch in table.iter_batches(batch_size=1024):
                for values in batch.to_pylist():
                    row += 1
                    yield Record(row, values)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} is damaged, reading stopped after row {row}: {reason} Download or export it again.") from None


def _jsonl(path: Path) -> Iterator[Record | Unreadable]:
    # Split at newlines only: str.splitlines would also split a string that holds U+2028.
    with _open(path) as file:
        for row, line in enumerate(file, start=1):
            if row == 1:
                line = line.removeprefix(BOM)
            stripped = line.strip()
            if stripped:
                yield _parse_line(row, stripped, whole=line.endswith(b"\n"))


def _parse_line(row: int, line: bytes, *, whole: bool) -> Record | Unreadable:
    try:
        values = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return Unreadable(row, f"is not UTF-8 (byte {error.start} of the line)")
    except (json.JSONDecodeError, RecursionError) as error:
        if not whole:
            return Unreadable(row, "is torn: the file ends in the middle of this line")
        return Unreadable(row, f"is not JSON ({error})")
    if not isinstance(values, dict):
        return Unreadable(row, f"is {_json_kind(values)}, not an object")
    return Record(row, values)


def _json_kind(value: object) -> str:
    return {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(type(value), "a number")
