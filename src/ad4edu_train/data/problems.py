"""Bad rows, gathered over whole files, and the one message that names them all."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ad4edu_train.errors import DataError

# Beyond this many rows of one kind the message gives their count and the last row only.
ROWS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands: `row` counts from 1, `pair_id` is empty where the row has none."""

    row: int
    pair_id: str
    detail: str

    def __str__(self) -> str:
        name = f"pair_id {self.pair_id} (row {self.row})" if self.pair_id else f"row {self.row}"
        return f"{name}: {self.detail}" if self.detail else name


@dataclass
class Problems:
    """Problems by file and kind, in the order found. A kind is the sentence that says what is wrong and what to do."""

    rows_read: dict[Path, int] = field(default_factory=dict)
    found: dict[tuple[Path, str], list[Place]] = field(default_factory=dict)

    def add(self, path: Path, kind: str, row: int, pair_id: str = "", detail: str = "") -> None:
        self.found.setdefault((path, kind), []).append(Place(row, pair_id, detail))

    def __bool__(self) -> bool:
        return bool(self.found)

    def bad_rows(self, path: Path) -> set[int]:
        return {place.row for (where, _), places in self.found.items() if where == path for place in places}

    def counts(self) -> dict[str, int]:
        """Bad rows by file name and kind, for run.json: no ids, no text."""
        counted: Counter[str] = Counter()
        for (path, kind), places in self.found.items():
            counted[f"{path.name}: {kind.splitlines()[0]}"] += len(places)
        return dict(counted)

    def lines(self) -> Iterator[str]:
        for (path, kind), places in self.found.items():
            headline, *advice = kind.splitlines()
            yield f"{path}: {len(places)} of {self.rows_read.get(path, 0)} rows: {headline}"
            for place in places[:ROWS_SHOWN]:
                yield f"  {place}"
            if len(places) > ROWS_SHOWN:
                yield f"  and {len(places) - ROWS_SHOWN} more, up to row {places[-1].row}"
            yield from advice

    def leaks(self) -> "Problems":
        """Those that share something with the test set: they are never dropped, only mended."""
        kinds = {key: places for key, places in self.found.items() if key[1].startswith("leak:")}
        return Problems(self.rows_read, kinds)

    def raise_if_any(self, advice: str) -> None:
        if self:
            raise DataError("\n".join([*self.lines(), advice]))
