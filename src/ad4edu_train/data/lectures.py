"""What is known of lectures beside the pairs: subjects, moment order, rendered cursors. The card has no columns for these."""

from typing import TypeVar

from ad4edu_train.data.files import Unreadable, read_json, read_records
from ad4edu_train.data.sources import DataFiles
from ad4edu_train.errors import DataError

Value = TypeVar("Value")


def read_subjects(files: DataFiles) -> dict[str, str]:
    """lecture -> subject; empty without the input, and then every subject is "unknown"."""
    return _read_map(files, "subjects", str, '{"lecture": "subject"}')


def read_cursor_capability(files: DataFiles) -> dict[str, bool]:
    """lecture -> does its recording render a cursor."""
    return _read_map(files, "cursor_capability", bool, '{"lecture": true or false}')


def read_moment_order(files: DataFiles) -> dict[str, float]:
    """moment_id -> seconds from the start of its lecture; empty without the input."""
    times: dict[str, float] = {}
    for path in files["moment_order"]:
        for record in read_records(path):
            values = {} if isinstance(record, Unreadable) else record.values
            moment, time = values.get("moment_id"), values.get("time_s")
            if not isinstance(moment, str) or isinstance(time, bool) or not isinstance(time, int | float):
                raise DataError(f"{path}, row {record.row}: expected moment_id (text) and time_s (seconds).")
            times[moment] = float(time)
    return times


def _read_map(files: DataFiles, name: str, kind: type[Value], expected: str) -> dict[str, Value]:
    merged: dict[str, Value] = {}
    for path in files[name]:
        value = read_json(path)
        if not isinstance(value, dict) or not all(isinstance(item, kind) for item in value.values()):
            raise DataError(f"{path} is not a map {expected}.")
        merged |= value
    return merged
