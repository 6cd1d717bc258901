"""Which training pairs are set aside: a validation slice by moment or lecture, and a true course holdout."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from ad4edu_train.data.rows import PreferencePair
from ad4edu_train.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True)
class Split:
    """Training pairs after every setting-aside; `excluded` counts the pairs of excluded subjects."""

    train: list[PreferencePair]
    validation: list[PreferencePair]
    excluded: int


def split_pairs(
    pairs: list[PreferencePair],
    *,
    validation_fraction: float,
    by: Literal["moment", "lecture"],
    seed: int,
    subjects: dict[str, str],
    exclude_subjects: tuple[str, ...] = (),
) -> Split:
    """Set aside about `validation_fraction` of the moments or lectures, all pairs of each together.

    A unit goes to validation by its own hash with the seed, so adding pairs or other units moves none of the old ones.
    """
    known = set(subjects.values())
    unknown = [subject for subject in exclude_subjects if subject not in known]
    if unknown:
        raise ConfigError(
            "data.exclude_subjects",
            unknown,
            f"subjects of the lecture -> subject map ({', '.join(sorted(known)) or 'none given'})",
        )
    unmapped = sorted({pair.lecture for pair in pairs} - subjects.keys()) if exclude_subjects else []
    if unmapped:
        names = ", ".join(unmapped[:20]) + (f" and {len(unmapped) - 20} more" if len(unmapped) > 20 else "")
        raise DataError(
            f"{len(unmapped)} training lectures have no subject in the lecture -> subject map: {names}. Whether they belong to "
            "an excluded subject cannot be known, so the holdout would be none. Complete the map (data.subjects)."
        )
    kept = [pair for pair in pairs if subjects.get(pair.lecture) not in exclude_subjects]
    held = [_share(pair.moment_id if by == "moment" else pair.lecture, seed) < validation_fraction for pair in kept]
    return Split(
        train=[pair for pair, aside in zip(kept, held, strict=True) if not aside],
        validation=[pair for pair, aside in zip(kept, held, strict=True) if aside],
        excluded=len(pairs) - len(kept),
    )


def _share(unit: str, seed: int) -> float:
    """A number in [0, 1) that depends on the unit and the seed alone."""
    digest = hashlib.sha256(f"{seed}\x1f{unit}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
