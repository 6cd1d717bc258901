"""Records of a Parquet or JSONL file, one at a time, with the place each stands at. Memory does not grow with the file."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ad4edu_train.errors import DataError

LFS_MARK = b"version https://git-lfs.github.com/spec/"
PARQUET_MARK = b"PAR1"
COMPRESSED_MARKS = (b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")  # gzip, zip, zstd
BOM = b"\xef\xbb\xbf"
LINE_BREAKS = b"\r\n"


@dataclass(frozen=True, slots=True)
class Record:
    """One row as it stands in a file. `row` counts from 1: the line of a JSONL file, the row of a Parquet file."""

    row: int
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that could not be read, and why. `values` is what could be read of it all the same: enough to name it."""

    row: int
    reason: str
    values: dict[str, Any] = field(default_factory=dict)


def read_records(path: Path) -> Iterator[Record | Unreadable]:
    """Rows of a Parquet file, or of a JSONL file (one object a line). Told apart by the name, or by how the file begins.

    Raises DataError for a file that holds no data at all: missing, empty, a Git LFS pointer, compressed, no Parquet.
    """
    with _open(path) as file:
        head = file.read(len(LFS_MARK))
    _refuse_pointer(path, head)
    if not head:
        raise DataError(f"{path} is empty (0 bytes). Download or export it again.")
    if path.suffix == ".parquet" or head.startswith(PARQUET_MARK):
        yield from _parquet(path, head)
    elif head.startswith(COMPRESSED_MARKS):
        raise DataError(f"{path} is compressed. Unpack it first: JSONL is read as plain UTF-8 text.")
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
    _refuse_pointer(path, content)
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from None
    if _half_characters(content, value):
        raise DataError(f"{path} holds half of a surrogate pair, which is no valid text. Export it again.")
    return value


def _open(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def _refuse_pointer(path: Path, head: bytes) -> None:
    if head.startswith(LFS_MARK):
        raise DataError(f"{path} is a Git LFS pointer, not data. Run `git lfs pull` in its repository, or download the file.")


def _parquet(path: Path, head: bytes) -> Iterator[Record | Unreadable]:
    import pyarrow
    import pyarrow.parquet

    if not head.startswith(PARQUET_MARK):
        raise DataError(f"{path} is not a Parquet file: it does not begin with PAR1. Download or export it again.")
    row = 0
    try:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as table:
            for batch in table.iter_batches(batch_size=1024):
                yield from _rows_of_batch(batch, row)
                row += batch.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(f"{path} is damaged, reading stopped after row {row}: {reason} Download or export it again.") from None


def _rows_of_batch(batch: Any, before: int) -> Iterator[Record | Unreadable]:
    """Rows of one Arrow batch. Values that Python cannot hold (text that is not UTF-8, odd timestamps) spoil only their row."""
    try:
        rows = batch.to_pylist()
    except (ValueError, OverflowError):
        for index in range(batch.num_rows):
            try:
                yield Record(before + index + 1, batch.slice(index, 1).to_pylist()[0])
            except (ValueError, OverflowError):
                readable, bad = _readable_columns(batch.slice(index, 1))
                yield Unreadable(before + index + 1, f"holds values that cannot be read in {', '.join(bad)}", readable)
    else:
        for index, values in enumerate(rows):
            yield Record(before + index + 1, values)


def _readable_columns(row: Any) -> tuple[dict[str, Any], list[str]]:
    """(values that can be read, names of the columns that cannot) of a batch of one row."""
    values, bad = {}, []
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            values[name] = column.to_pylist()[0]
        except (ValueError, OverflowError):
            bad.append(name)
    return values, bad


def _jsonl(path: Path) -> Iterator[Record | Unreadable]:
    # Split at newlines only: str.splitlines would also split a string that holds U+2028.
    with _open(path) as file:
        for row, line in enumerate(file, start=1):
            if row == 1:
                line = line.removeprefix(BOM)
            if line.strip():
                yield _parse_line(row, line.rstrip(LINE_BREAKS), whole=line.endswith(b"\n"))


def _parse_line(row: int, line: bytes, *, whole: bool) -> Record | Unreadable:
    try:
        values = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        # json.JSONDecodeError and UnicodeDecodeError are ValueErrors, and so is an integer of thousands of digits.
        if not whole:
            return Unreadable(row, "is torn: the file ends in the middle of this line")
        if isinstance(error, UnicodeDecodeError):
            return Unreadable(row, f"is not UTF-8 (byte {error.start + 1} of the line)")
        return Unreadable(row, f"is not JSON ({error})")
    if not isinstance(values, dict):
        return Unreadable(row, f"is {_json_kind(values)}, not an object")
    if _half_characters(line, values):
        where = ", ".join(sorted(ascii(name)[1:-1] for name, value in values.items() if _half_characters(line, [name, value])))
        return Unreadable(row, f"holds half of a surrogate pair, which is no valid text, in {where}", values)
    return Record(row, values)


def _half_characters(source: bytes, value: object) -> bool:
    r"""Does a JSON value hold a lone surrogate? Only a \ud800 .. \udfff escape in its source can bring one in."""
    if b"\\ud" not in source and b"\\uD" not in source:
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _json_kind(value: object) -> str:
    return {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(type(value), "a number")
