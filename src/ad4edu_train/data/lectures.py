"""What is known of lectures beside the pairs: subjects, moment order, rendered cursors. The card has no columns for these."""

from typing import Any, TypeVar

from ad4edu_train.data.files import read_json
from ad4edu_train.data.rows import RowError, shown
from ad4edu_train.data.sources import DataFiles
from ad4edu_train.errors import DataError

Value = TypeVar("Value")


def read_subjects(files: DataFiles) -> dict[str, str]:
    """lecture -> subject; empty without the input, and then every subject is "unknown"."""
    return _read_map(files, "subjects", str, '{"lecture": "subject"}')


def read_cursor_capability(files: DataFiles) -> dict[str, bool]:
    """lecture -> does its recording render a cursor."""
    return _read_map(files, "cursor_capability", bool, '{"lecture": true or false}')


def moment_time(values: dict[str, Any]) -> tuple[str, float]:
    """(moment_id, seconds from the start of its lecture), a row of moment_order.jsonl. Raises RowError."""
    moment, time = values.get("moment_id"), values.get("time_s")
    if not isinstance(moment, str) or not moment:
        raise RowError(f"moment_id is {shown(moment)}, not text")
    # Compared before it is converted: an integer of hundreds of digits has no float.
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time < 1e9:
        raise RowError(f"time_s is {shown(time)}, not seconds")
    return moment, float(time)


def _read_map(files: DataFiles, name: str, kind: type[Value], expected: str) -> dict[str, Value]:
    merged: dict[str, Value] = {}
    for path in files[name]:
        value = read_json(path)
        if not isinstance(value, dict) or not all(isinstance(item, kind) for item in value.values()):
            raise DataError(f"{path} is not a map {expected}. See docs/data_contract.md.")
        merged |= value
    return merged
