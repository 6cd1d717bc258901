import pytest

from ad4edu_train.data.rows import preference_pair
from ad4edu_train.data.splits import split_pairs
from ad4edu_train.errors import ConfigError
from tests.data.conftest import train_row


def pairs(count):
    return [preference_pair(train_row(n, moment_id=f"m{n // 3}", lecture=f"l{n // 12}")) for n in range(count)]


def split(rows, **options):
    return split_pairs(rows, **({"validation_fraction": 0.3, "by": "moment", "seed": 0, "subjects": {}} | options))


@pytest.mark.parametrize(("by", "unit"), [("moment", "moment_id"), ("lecture", "lecture")])
def test_validation_shares_no_unit_and_loses_no_pair(by, unit):
    rows = pairs(300)
    made = split(rows, by=by)
    assert made.train
    assert made.validation
    assert not {getattr(p, unit) for p in made.train} & {getattr(p, unit) for p in made.validation}
    assert {p.pair_id for p in made.train + made.validation} == {p.pair_id for p in rows}


def test_share_is_about_the_fraction_and_follows_the_seed():
    rows = pairs(3000)
    sizes = {seed: len(split(rows, seed=seed).validation) for seed in range(3)}
    assert all(780 <= size <= 1020 for size in sizes.values())
    assert split(rows) == split(rows)
    assert split(rows).validation != split(rows, seed=1).validation


def test_more_pairs_move_none_of_the_old_ones():
    before = {p.pair_id for p in split(pairs(200)).validation}
    after = {p.pair_id for p in split(pairs(300)).validation}
    assert before == after & {p.pair_id for p in pairs(200)}


def test_excluded_subjects_leave_and_are_counted():
    subjects = {f"l{n}": "Mathematics" if n % 2 else "Biology" for n in range(9)}
    made = split(pairs(96), subjects=subjects, exclude_subjects=("Mathematics",))
    assert made.excluded == 48
    assert {subjects[p.lecture] for p in made.train + made.validation} == {"Biology"}
    with pytest.raises(ConfigError, match=r"Mathematcs.*Biology, Mathematics"):
        split(pairs(9), subjects=subjects, exclude_subjects=("Mathematcs",))
