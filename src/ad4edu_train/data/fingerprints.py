"""64-bit fingerprints of texts, so that a million rows can be compared in a few bytes each."""

import hashlib
import unicodedata
from array import array
from bisect import bisect_left

import numpy as np

from ad4edu_train.data.rows import HumanPair, Pair


def fingerprint(*texts: str) -> int:
    """64 bits of the texts, in order. Two different texts collide once in about 10^19 comparisons."""
    joined = "\x1f".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little")


def content_fingerprint(pair: Pair) -> int:
    """What `train_prefs` and `dpo_train`, or `test_human` and `human_val_400`, must have in common for a pair."""
    labels: list[str | None] = []
    if isinstance(pair, HumanPair):
        labels = [pair.stratum, *pair.raters.values(), pair.human_winner]
    return fingerprint(
        pair.moment_id,
        pair.prompt_id,
        pair.lecture,
        pair.type,
        pair.axis,
        pair.source,
        pair.label_source or "",
        pair.first.ad,
        pair.second.ad,
        *(label or "" for label in labels),
    )


def normalised(text: str) -> str:
    """Text for comparison across files: compatibility form, case folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


class Fingerprints:
    """A set of fingerprints in 8 bytes each: filled first, asked afterwards."""

    def __init__(self) -> None:
        self._values = array("Q")
        self._sorted = True

    def add(self, value: int) -> None:
        self._values.append(value)
        self._sorted = False

    def __contains__(self, value: int) -> bool:
        if not self._sorted:
            np.asarray(self._values).sort()
            self._sorted = True
        index = bisect_left(self._values, value)
        return index < len(self._values) and self._values[index] == value


class IdColumn:
    """The ids of a table in file order, in 25 bytes a row. A place is (shard of the table, row of that file)."""

    _SHARD = 1 << 40
    _BLOCK = 1 << 15  # rows compared at once: temporary arrays do not grow with the table

    def __init__(self) -> None:
        self._ids = array("Q")
        self._contents = array("Q")
        self._places = array("Q")
        self._compared = array("B")

    def add(self, shard: int, row: int, pair: Pair, *, compared: bool) -> None:
        """`compared`: must another table hold this row too (see `places_not_in`)?"""
        self._ids.append(fingerprint(pair.pair_id))
        self._contents.append(content_fingerprint(pair))
        self._places.append(shard * self._SHARD + row)
        self._compared.append(compared)

    def repeated(self) -> list[tuple[int, int]]:
        """Places whose id stands at an earlier place too."""
        ids = np.asarray(self._ids)
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        later = order[1:][ids[1:] == ids[:-1]]
        return [self._place(index) for index in np.sort(later)]

    def places_not_in(self, other: "IdColumn") -> dict[tuple[int, int], str]:
        """Place and reason of each compared row that `other` lacks or has with another content."""
        their_ids, their_contents = other._compared_rows()
        places = {}
        for start in range(0, len(self._ids), self._BLOCK):
            block = slice(start, start + self._BLOCK)
            ids, contents = np.asarray(self._ids)[block], np.asarray(self._contents)[block]
            found = np.searchsorted(their_ids, ids)
            inside = found < len(their_ids)
            present, equal = np.zeros(len(ids), bool), np.zeros(len(ids), bool)
            present[inside] = their_ids[found[inside]] == ids[inside]
            equal[inside] = their_contents[found[inside]] == contents[inside]
            bad = np.asarray(self._compared)[block].astype(bool) & ~(present & equal)
            for index in np.flatnonzero(bad):
                places[self._place(start + index)] = "the rows differ" if present[index] else "absent"
        return places

    def _compared_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Ids and contents of the compared rows, by rising id; of one id the first row in file order stands first."""
        order = np.argsort(np.asarray(self._ids), kind="stable")
        order = order[np.asarray(self._compared)[order] == 1]
        return np.asarray(self._ids)[order], np.asarray(self._contents)[order]

    def _place(self, index: int) -> tuple[int, int]:
        return divmod(self._places[index], self._SHARD)
