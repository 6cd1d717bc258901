"""64-bit fingerprints of texts, so that a million rows can be compared in a few bytes each."""

import hashlib
import unicodedata
from array import array

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


class IdColumn:
    """The ids of a table in file order, in 25 bytes a row. A place is (shard of the table, row of that file)."""

    _SHARD = 1 << 40

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
        ids = np.asarray(self._ids, dtype=np.uint64)
        order = np.argsort(ids, kind="stable")
        later = order[1:][ids[order[1:]] == ids[order[:-1]]]
        return [self._place(index) for index in np.sort(later)]

    def places_not_in(self, other: "IdColumn") -> dict[tuple[int, int], str]:
        """Place and reason of each compared row that `other` lacks or has with another content."""
        mine = np.flatnonzero(np.asarray(self._compared))
        theirs = np.flatnonzero(np.asarray(other._compared))
        ids, their_ids = np.asarray(self._ids)[mine], np.asarray(other._ids)[theirs]
        if not len(mine) or not len(theirs):
            return {self._place(index): "absent" for index in mine}
        order = np.argsort(their_ids, kind="stable")
        found = order[np.minimum(np.searchsorted(their_ids[order], ids), len(order) - 1)]
        absent = their_ids[found] != ids
        changed = ~absent & (np.asarray(other._contents)[theirs][found] != np.asarray(self._contents)[mine])
        return {
            self._place(mine[index]): "absent" if absent[index] else "the rows differ"
            for index in np.flatnonzero(absent | changed)
        }

    def _place(self, index: int) -> tuple[int, int]:
        return divmod(self._places[index], self._SHARD)
