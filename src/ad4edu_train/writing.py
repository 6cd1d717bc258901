"""Files that pass between steps, written whole or not at all: a reader never sees half of one."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PRIVATE = 0o600


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write `text` to `path` in one step, with the given permissions."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)


def write_private_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """A JSONL file with one row a pair, readable by the user alone."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), PRIVATE)
