"""Counts of a table of pairs, taken in one pass: pairs, moments and lectures by every column that the card tabulates."""

from collections import Counter
from dataclasses import dataclass, field

from ad4edu_train.data.fingerprints import fingerprint
from ad4edu_train.data.rows import CandidatePair, HumanPair, Pair
from ad4edu_train.data.vocabulary import UNKNOWN_SUBJECT


@dataclass
class Tally:
    """Pairs by (column, value) and, for each moment, the set of (column, value) that its pairs carry, as a bit mask.

    A moment can carry pairs of several types and axes, so it may count in several rows of one table.
    """

    by_moment: bool = True  # false for tables whose moments nobody asks for
    pairs: int = 0
    by: Counter[tuple[str, str]] = field(default_factory=Counter)
    subject_of: dict[str, str] = field(default_factory=dict)
    pairs_by_lecture: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    _moments: dict[int, int] = field(default_factory=dict)
    _bits: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, pair: Pair) -> None:
        self.pairs += 1
        self.pairs_by_lecture[pair.lecture] += 1
        mask = 0
        for cell in self._cells(pair):
            self.by[cell] += 1
            mask |= 1 << self._bits.setdefault(cell, len(self._bits))
        if self.by_moment:
            moment = fingerprint(pair.moment_id)
            self._moments[moment] = self._moments.get(moment, 0) | mask
        if pair.label_source == "judge" and not isinstance(pair, HumanPair | CandidatePair):
            self._count_judged_lengths(pair)

    @property
    def moments(self) -> int:
        return len(self._moments)

    def moments_by(self, column: str, value: str) -> int:
        bit = self._bits.get((column, value))
        return 0 if bit is None else sum(mask >> bit & 1 for mask in self._moments.values())

    def values(self, column: str) -> list[str]:
        return sorted(value for name, value in self.by if name == column)

    def lectures(self, subject: str | None = None) -> list[str]:
        return sorted(name for name in self.pairs_by_lecture if subject is None or self.subject(name) == subject)

    def subject(self, lecture: str) -> str:
        return self.subject_of.get(lecture, UNKNOWN_SUBJECT)

    def _cells(self, pair: Pair) -> list[tuple[str, str]]:
        cells = [
            ("subject", self.subject(pair.lecture)),
            ("type", pair.type),
            ("axis", pair.axis),
            ("label_source", pair.label_source or "none"),
        ]
        if pair.axis == "natural" and pair.cross_family is False:
            cells.append(("same_family", "natural"))
        if isinstance(pair, HumanPair):
            cells += [("stratum", pair.stratum), ("winner", pair.human_winner or "none")]
            cells += [(rater, vote or "none") for rater, vote in pair.raters.items()]
            cells += [(f"machine_{family}", choice or "none") for family, choice in pair.machine.items()]
            cells.append(("labels_pending", str(pair.labels_pending).lower()))
        if isinstance(pair, CandidatePair):
            cells.append(("train_eligible", str(pair.train_eligible).lower()))
            cells += [(f"flag {name}", str(value).lower()) for name, value in pair.flags.items()]
        return cells

    def _count_judged_lengths(self, pair: Pair) -> None:
        chosen, rejected = len(pair.first.ad), len(pair.second.ad)
        self.judged["equal" if chosen == rejected else "longer" if chosen > rejected else "shorter"] += 1
