"""How many lectures, moments and pairs of each kind the corpus has: the card's counts, or its proportions at another size.

Pure counting with a seeded generator; knows nothing of texts. The card gives only margins, so the joint table is drawn at
random under all of them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

CARD_TEST_MOMENTS = 271
SUBJECTS = ("Anatomy", "Biology", "Machine learning", "Mathematics", "Psychology")
AXES = ("deixis", "faithfulness", "length", "non_redundancy", "style", "terminology")

TRAIN_LECTURES = dict(zip(SUBJECTS, (19, 12, 4, 5, 9), strict=True))
TRAIN_MOMENTS = dict(zip(SUBJECTS, (223, 203, 206, 91, 85), strict=True))
TRAIN_PAIRS = dict(zip(SUBJECTS, (1025, 984, 519, 538, 474), strict=True))
TEST_LECTURES = dict(zip(SUBJECTS, (6, 5, 11, 0, 5), strict=True))
TEST_MOMENTS = dict(zip(SUBJECTS, (33, 31, 176, 0, 31), strict=True))
TEST_PAIRS = dict(zip(SUBJECTS, (54, 42, 260, 0, 44), strict=True))
# The card gives the total of 16 shared lectures; the split over subjects is ours.
SHARED_LECTURES = dict(zip(SUBJECTS, (5, 4, 3, 0, 4), strict=True))

TYPES = ("pointing", "slide", "figure", "reveal", "animation", "ink", "math", "table", "chart", "transition")
TRAIN_TYPE_PAIRS = dict(zip(TYPES, (2033, 850, 288, 183, 67, 32, 36, 21, 17, 13), strict=True))
TRAIN_TYPE_MOMENTS = dict(zip(TYPES, (418, 221, 63, 62, 19, 6, 15, 7, 4, 2), strict=True))
TEST_TYPE_PAIRS = dict(zip(TYPES, (286, 46, 46, 6, 7, 4, 0, 1, 3, 1), strict=True))
# Not on the card: 271 moments, two of which carry pairs of two types.
TEST_TYPE_MOMENTS = dict(zip(TYPES, (189, 34, 34, 5, 4, 3, 0, 1, 2, 1), strict=True))

TRAIN_AXIS_PAIRS = dict(zip(("natural", *AXES), (2501, 219, 145, 191, 170, 149, 165), strict=True))
TRAIN_AXIS_MOMENTS = dict(zip(("natural", *AXES), (759, 114, 93, 117, 106, 92, 99), strict=True))
SAME_FAMILY_PAIRS = 53
STRATA_PAIRS = {"natural_flip": 50, "controlled": 250, "natural_decided": 100}


@dataclass
class MomentPlan:
    """A moment to fill. `pairs` holds (type, axis, stratum); axis is `natural` or a perturbation, stratum None in train."""

    split: str
    subject: str
    lecture: str
    types: tuple[str, ...]
    pairs: list[tuple[str, str, str | None]] = field(default_factory=list)
    same_family: int = 0


def largest_remainder(weights: Mapping[str, float], total: int) -> dict[str, int]:
    """Integers with the given total, proportional to weights (Hamilton's method); exact when weights sum to total."""
    scale = total / sum(weights.values())
    shares = {key: int(weight * scale + 1e-9) for key, weight in weights.items()}
    by_rest = sorted(weights, key=lambda key: shares[key] - weights[key] * scale)
    for key in by_rest[: total - sum(shares.values())]:
        shares[key] += 1
    return shares


def bounded(counts: Mapping[str, int], low: Mapping[str, int], high: Mapping[str, int]) -> dict[str, int]:
    """The counts moved into [low, high] with their total kept; raises ValueError when the total cannot fit."""
    total = sum(counts.values())
    fixed = {key: min(max(count, low[key]), high[key]) for key, count in counts.items()}
    while (gap := total - sum(fixed.values())) != 0:
        step = 1 if gap > 0 else -1
        movable = [key for key in fixed if low[key] <= fixed[key] + step <= high[key]]
        if not movable:
            raise ValueError(f"{total} units do not fit between {dict(low)} and {dict(high)}")
        fixed[max(movable, key=lambda key: (high[key] - fixed[key]) if step > 0 else (fixed[key] - low[key]))] += step
    return fixed


@dataclass(frozen=True)
class Margins:
    """The counts one split has to reproduce."""

    lectures: dict[str, int]
    moments: dict[str, int]
    pairs: dict[str, int]
    type_moments: dict[str, int]
    type_pairs: dict[str, int]


def margins(split: str, test_moments: int) -> Margins:
    """Margins of a split when test_human has `test_moments` moments; exactly the card's at 271."""
    train = split == "train"
    n_moments = round((808 if train else 271) * test_moments / CARD_TEST_MOMENTS)
    n_pairs = round((3540 / 808 if train else 400 / 271) * n_moments)
    n_slots = round((817 / 808 if train else 273 / 271) * n_moments)
    moments = largest_remainder(TRAIN_MOMENTS if train else TEST_MOMENTS, n_moments)
    no_limit = dict.fromkeys(TYPES + SUBJECTS, n_pairs)
    pairs = bounded(largest_remainder(TRAIN_PAIRS if train else TEST_PAIRS, n_pairs), moments, no_limit)
    type_pairs = largest_remainder(TRAIN_TYPE_PAIRS if train else TEST_TYPE_PAIRS, n_pairs)
    type_moments = bounded(
        largest_remainder(TRAIN_TYPE_MOMENTS if train else TEST_TYPE_MOMENTS, n_slots),
        {kind: min(1, count) for kind, count in type_pairs.items()},
        type_pairs,
    )
    card_lectures = TRAIN_LECTURES if train else TEST_LECTURES
    lectures = {
        subject: min(moments[subject], max(1, round(card_lectures[subject] * test_moments / CARD_TEST_MOMENTS)))
        for subject in SUBJECTS
    }
    return Margins(lectures, moments, pairs, type_moments, type_pairs)


def axis_margins(n_moments: int, n_pairs: int) -> tuple[dict[str, int], dict[str, int]]:
    """(pairs by axis, moments by axis) of train; exactly the card's for 808 moments and 3540 pairs."""
    pairs = largest_remainder(TRAIN_AXIS_PAIRS, n_pairs)
    incidences = round(sum(TRAIN_AXIS_MOMENTS.values()) * n_moments / 808)
    wanted = largest_remainder(TRAIN_AXIS_MOMENTS, incidences)
    return pairs, {axis: min(wanted[axis], pairs[axis], n_moments) for axis in pairs}


def _lecture_names(split: str, subject: str, test_moments: int) -> list[str]:
    """Names of a subject's lectures; test takes the first few of train (the shared ones) and then new ones."""
    train, test = margins("train", test_moments).lectures[subject], margins("test", test_moments).lectures[subject]
    shared = min(train, test, round(SHARED_LECTURES[subject] * test_moments / CARD_TEST_MOMENTS))
    numbers = range(1, train + 1) if split == "train" else [*range(1, shared + 1), *range(train + 1, train + 1 + test - shared)]
    return [f"{subject.lower().replace(' ', '-')}-{number:02d}" for number in numbers]


def _slot_subjects(wanted: Margins, rng: Random) -> dict[tuple[str, str], int]:
    """Slots (a moment's pairs of one type) by (subject, type), with both margins exact."""
    spare = sum(wanted.type_moments.values()) - sum(wanted.moments.values())
    extra = largest_remainder(wanted.pairs, spare)
    subjects = [subject for subject in SUBJECTS for _ in range(wanted.moments[subject] + extra[subject])]
    types = [kind for kind in TYPES for _ in range(wanted.type_moments[kind])]
    rng.shuffle(subjects)
    rng.shuffle(types)
    # Equations belong to mathematics lectures as far as there are any.
    subjects.sort(key=lambda subject: subject != "Mathematics")
    types.sort(key=lambda kind: kind != "math")
    return Counter(zip(subjects, types, strict=True))


def _pair_table(wanted: Margins, slots: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Pairs by (subject, type): one or more a slot, none without a slot, both margins exact. ValueError if impossible."""
    rest = {s: wanted.pairs[s] - sum(n for (subject, _), n in slots.items() if subject == s) for s in SUBJECTS}
    table = dict(slots)
    for kind in sorted(TYPES, key=lambda kind: wanted.type_moments[kind]):
        extra = wanted.type_pairs[kind] - wanted.type_moments[kind]
        here = {subject: slots.get((subject, kind), 0) for subject in SUBJECTS}
        if extra == 0:
            continue
        # Subjects that still need many pairs take more of each type.
        pull = {subject: count * max(rest[subject], 0) for subject, count in here.items()}
        if sum(pull.values()) == 0:
            raise ValueError(f"no subject is left for {extra} pairs of type {kind}")
        share = bounded(
            largest_remainder(pull, extra),
            dict.fromkeys(SUBJECTS, 0),
            {subject: rest[subject] if here[subject] else 0 for subject in SUBJECTS},
        )
        for subject, count in share.items():
            rest[subject] -= count
            if count:
                table[subject, kind] += count
    if any(rest.values()):
        raise ValueError(f"pairs left without a slot: {rest}")
    return table


def _moments(split: str, test_moments: int, rng: Random) -> list[tuple[MomentPlan, list[str]]]:
    """Moments with their lecture and the type of each of their pairs."""
    wanted = margins(split, test_moments)
    slots = _slot_subjects(wanted, rng)
    table = _pair_table(wanted, slots)
    result: list[tuple[MomentPlan, list[str]]] = []
    for subject in SUBJECTS:
        sizes: list[tuple[str, int]] = []
        for kind in TYPES:
            n_slots = slots.get((subject, kind), 0)
            counts = [1] * n_slots
            for _ in range(table.get((subject, kind), 0) - n_slots):
                # Two draws, the smaller one grows: pairs a moment vary, but no moment takes them all.
                counts[min(rng.randrange(n_slots), rng.randrange(n_slots), key=lambda i: counts[i])] += 1
            sizes += [(kind, count) for count in counts]
        rng.shuffle(sizes)
        n = wanted.moments[subject]
        names = _lecture_names(split, subject, test_moments)
        lectures = names + [rng.choice(names) for _ in range(n - len(names))] if n else []
        mine = [
            (MomentPlan(split, subject, lecture, (sizes[i][0],)), [sizes[i][0]] * sizes[i][1])
            for i, lecture in enumerate(lectures)
        ]
        for kind, count in sizes[n:]:
            partner = next((m for m in mine if len(m[0].types) == 1 and m[0].types[0] != kind), None)
            if partner is None:
                raise ValueError(f"no {subject} moment can carry a second type {kind}")
            partner[0].types += (kind,)
            partner[1].extend([kind] * count)
        result += mine
    return result


def _axes_of_moments(sizes: list[int], rng: Random) -> list[list[str]]:
    """The axis of every pair of every train moment, given pairs a moment; pairs and moments by axis exact."""
    pairs, moments = axis_margins(len(sizes), sum(sizes))
    todo, new = dict(pairs), dict(moments)
    axes: list[list[str]] = [[] for _ in sizes]
    by_size = sorted(range(len(sizes)), key=lambda i: (sizes[i], rng.random()))
    constructed_only = by_size[: len(sizes) - moments["natural"]]
    natural = by_size[len(constructed_only) :]
    for i in constructed_only:
        for axis in sorted(AXES, key=lambda axis: (-new[axis], axis))[: sizes[i]]:
            axes[i].append(axis)
            todo[axis], new[axis] = todo[axis] - 1, new[axis] - 1
        if len(axes[i]) < sizes[i]:
            raise ValueError("a moment without natural pairs has more pairs than there are axes")
    room = {i: sizes[i] - 1 for i in natural}
    for axis in AXES:
        open_moments = [i for i in natural if room[i] > 0]
        # Roomier moments are likelier, so that enough room is left for second pairs of an axis.
        open_moments.sort(key=lambda i: -(rng.random() ** (1 / room[i])))
        for i in open_moments[: new[axis]]:
            axes[i].append(axis)
            room[i] -= 1
            todo[axis], new[axis] = todo[axis] - 1, new[axis] - 1
        if new[axis]:
            raise ValueError(f"too few moments for axis {axis}")
    for axis in AXES:
        while todo[axis]:
            holders = [i for i in natural if axis in axes[i] and room[i] > 0]
            if not holders:
                raise ValueError(f"no room for the last {todo[axis]} pairs of axis {axis}")
            i = min(holders, key=lambda i: (axes[i].count(axis), -room[i], rng.random()))
            axes[i].append(axis)
            room[i] -= 1
            todo[axis] -= 1
    for i in natural:
        axes[i] += ["natural"] * (sizes[i] - len(axes[i]))
    for row in axes:
        rng.shuffle(row)
    return axes


def _draw(test_moments: int, rng: Random) -> list[MomentPlan]:
    train, test = _moments("train", test_moments, rng), _moments("test", test_moments, rng)
    axes = _axes_of_moments([len(types) for _, types in train], rng)
    for (plan, types), row in zip(train, axes, strict=True):
        plan.pairs = [(kind, axis, None) for kind, axis in zip(types, row, strict=True)]
    n_test = sum(len(types) for _, types in test)
    strata = largest_remainder(STRATA_PAIRS, n_test)
    controlled = largest_remainder({axis: TRAIN_AXIS_PAIRS[axis] for axis in AXES}, strata["controlled"])
    labels = [("natural", s) for s in ("natural_flip", "natural_decided") for _ in range(strata[s])]
    labels += [(axis, "controlled") for axis in AXES for _ in range(controlled[axis])]
    rng.shuffle(labels)
    for plan, types in test:
        plan.pairs = [(kind, *labels.pop()) for kind in types]
    n_natural = sum(row.count("natural") for row in axes)
    holders = [plan for plan, _ in train if sum(axis == "natural" for _, axis, _ in plan.pairs) >= 1]
    for plan in rng.sample(holders, min(len(holders), round(SAME_FAMILY_PAIRS * n_natural / 2501))):
        plan.same_family = 1
    return [plan for plan, _ in train + test]


def allocate(test_moments: int, seed: int) -> list[MomentPlan]:
    """Plans of all moments, train first. At 271 test moments every margin of the card holds exactly.

    ValueError when no joint table is found, which happens only for very small corpora (below about 8 test moments).
    """
    failure: ValueError | None = None
    for attempt in range(200):
        try:
            return _draw(test_moments, Random(f"allocation/{seed}/{attempt}"))
        except ValueError as error:
            failure = error
    raise ValueError(f"no corpus of {test_moments} test moments has the card's proportions: {failure}")
