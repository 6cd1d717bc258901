"""Rows of a table in any form that other people's labels come in."""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ad4edu_train.data.files import BOM, Record, Unreadable, read_json, read_records
from ad4edu_train.data.rows import shown
from ad4edu_train.errors import DataError


def read_table(path: Path) -> Iterator[Record | Unreadable]:
    """Rows of a JSONL, JSON (an array of objects), CSV, TSV or Parquet file; in a CSV every value is text.

    `row` counts rows from 1, without the header. Raises DataError for a file that holds no table.
    """
    if path.suffix.lower() in (".csv", ".tsv"):
        yield from _csv(path)
        return
    try:
        with path.open("rb") as file:
            array = file.read(256).removeprefix(BOM).lstrip().startswith(b"[")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not array:
        yield from read_records(path)
        return
    for row, values in enumerate(read_json(path), start=1):
        yield Record(row, values) if isinstance(values, dict) else Unreadable(row, f"is {shown(values)}, not an object")


def _csv(path: Path) -> Iterator[Record | Unreadable]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            header = next(lines, [])
            repeated = [name for name, times in Counter(header).items() if times > 1]
            if repeated:
                raise DataError(f"{path} has the column {', '.join(repeated)} twice, so its values cannot be told apart.")
            for row, cells in enumerate((line for line in lines if line), start=1):
                if len(cells) == len(header):
                    yield Record(row, dict(zip(header, cells, strict=True)))
                else:
                    yield Unreadable(row, f"has {len(cells)} cells under {len(header)} columns")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no valid CSV in UTF-8: {error}.") from None
