"""Each rule of the contract: a bad row is named with file, row and pair_id, and all bad rows stand in one message."""

import itertools
import unicodedata
from collections import Counter

import pytest

from ad4edu_train.data.checks import majority
from ad4edu_train.data.corpus import load_corpus, seen_in_sft
from ad4edu_train.errors import DataError
from tests.data.conftest import (
    candidate_row,
    chat_row,
    check,
    check_files,
    data_config,
    human_row,
    message,
    prompt_text,
    sha,
    train_row,
    turns,
    write_folder,
    write_jsonl,
    write_parquet,
)  # fmt: skip


def train_with(tmp_path, *changes):
    """Inspect train_prefs with one row a set of changes, behind a good row."""
    rows = [train_row(0), *(train_row(n, **change) for n, change in enumerate(changes, start=1))]
    return check_files(train=write_jsonl(tmp_path / "train.jsonl", rows))


def test_a_good_folder_has_no_problem(folder):
    found = check(folder)
    assert message(found) == ""
    assert found.rows["train"], found.rows["test_human"] == (4, 3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prompt_id": sha("other")}, "the text differs"),
        ({"prompt_id": sha(prompt_text(1).replace("\n", "\r\n"))}, "only line ends differ"),
        ({"prompt_id": sha(prompt_text(1) + "\n")}, "only white space at the ends differs"),
        ({"prompt_id": sha(prompt_text(1)).upper()}, ""),
    ],
)
def test_prompt_id_is_the_sha256_of_the_exact_bytes(tmp_path, change, said):
    text = message(train_with(tmp_path, change))
    assert "1 of 2 rows: prompt_id is not the sha256" in text
    assert f"pair_id t-1 (row 2): {said}" in text
    assert "train without their images" in text


def test_prompt_id_says_when_only_the_unicode_form_differs(tmp_path):
    prompt = unicodedata.normalize("NFC", "Moment type: slide\nLecturer said: naïve café")
    assert unicodedata.normalize("NFD", prompt) != prompt
    found = train_with(tmp_path, {"prompt": prompt, "prompt_id": sha(unicodedata.normalize("NFD", prompt))})
    assert "only the Unicode form differs" in message(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rejected": turns(prompt_text(1) + " ", "An AD")}, "the user turn of a side is not the prompt"),
        ({"chosen": turns(prompt_text(1), " ")}, "an AD is empty"),
        ({"chosen": turns(prompt_text(1), "Same"), "rejected": turns(prompt_text(1), "Same")}, "both sides are the same AD"),
        ({"pair_id": "t-0"}, "the id stands on an earlier row too"),
        ({"chosen-rating": 1.2}, "chosen-rating is 1.2"),
        ({"chosen-rating": float("nan")}, "chosen-rating is nan"),
        ({"chosen-components": {"style": -0.1}}, "chosen-components.style is -0.1"),
        ({"cross_family": "yes"}, "cross_family is 'yes'"),
        ({"lecture": None}, "lecture is null"),
        ({"chosen": turns(prompt_text(1), "x")[::-1]}, "assistant, user"),
        ({"chosen": [{"role": "user", "content": prompt_text(1)}]}, "chosen"),
    ],
)
def test_trl_1752_and_kin_a_broken_row_is_named(tmp_path, change, said):
    text = message(train_with(tmp_path, {}, change))
    assert said in text
    assert "(row 3)" in text or "row 3" in text
    assert "1 of 3 rows" in text


def test_all_bad_rows_stand_in_one_message_by_kind(tmp_path):
    text = message(train_with(tmp_path, {"prompt_id": "x"}, {"prompt_id": "y"}, {"chosen-rating": 7}))
    assert "2 of 4 rows: prompt_id is not" in text
    assert all(part in text for part in ("pair_id t-1 (row 2)", "pair_id t-2 (row 3)", "pair_id t-3 (row 4)"))


def test_duplicates_across_shards_are_named_in_the_later_one(tmp_path):
    first = write_parquet(tmp_path / "a.parquet", [train_row(0), train_row(1)])
    second = write_parquet(tmp_path / "b.parquet", [train_row(2), train_row(1)])
    text = message(check_files(train=[first, second]))
    assert "b.parquet: 1 of 2 rows: the id stands on an earlier row too" in text
    assert "pair_id t-1 (row 2)" in text


def test_unknown_values_are_reported_and_kept(tmp_path):
    rows = [train_row(0, type="hologram"), train_row(1, axis="mood"), train_row(2, label_source="oracle"), train_row(3)]
    found = check_files(keep=("train",), train=write_jsonl(tmp_path / "t.jsonl", rows))
    assert found.unknown == Counter({("type", "hologram"): 1, ("axis", "mood"): 1, ("label_source", "oracle"): 1})
    assert len(found.kept["train"]) == 4
    assert not found.problems


@pytest.mark.parametrize("votes", list(itertools.product(("option_a", "option_b", "tie", None), repeat=4)))
def test_majority_is_a_brute_count(votes):
    a, b = sum(v == "option_a" for v in votes), sum(v == "option_b" for v in votes)
    assert majority(list(votes)) == (None if a == b else max((a, "option_a"), (b, "option_b"))[1])


def test_human_winner_that_the_raters_do_not_give_is_named(tmp_path):
    rows = [
        human_row(0),
        human_row(1, winner="option_b"),
        human_row(2, votes=("option_a", "option_b", "tie", "tie"), winner="option_a"),
        human_row(3, votes=("option_a", "option_b", "tie", "tie"), winner=None),
        human_row(4, votes=("first", "tie", "tie", "tie"), winner=None),
    ]
    text = message(check_files(test_human=write_jsonl(tmp_path / "h.jsonl", rows)))
    assert "2 of 5 rows: human_winner is not what the rater columns give" in text
    assert "pair_id h-1 (row 2): human_winner is option_b, the raters give option_a" in text
    assert "pair_id h-2 (row 3): human_winner is option_a, the raters give None" in text
    assert "rater_1 is 'first'" in text


def test_train_prefs_must_be_the_eligible_candidates(tmp_path):
    train = [train_row(n) for n in range(3)]
    changed = candidate_row(1)
    changed["chosen"] = turns(changed["prompt"], "Another AD")
    candidates = [candidate_row(0), changed, candidate_row(5), candidate_row(6, eligible=False)]
    text = message(
        check_files(
            train=write_parquet(tmp_path / "t.parquet", train), candidates=write_jsonl(tmp_path / "dpo_train.jsonl", candidates)
        )
    )
    assert "t.parquet: 2 of 3 rows: the pair is not an eligible row of dpo_train.jsonl" in text
    assert "pair_id t-1 (row 2): the rows differ" in text
    assert "pair_id t-2 (row 3): absent" in text
    assert "pair_id t-5 (row 3): absent" in text
    assert "t-6" not in text


def test_test_human_must_be_human_val(tmp_path):
    text = message(
        check_files(
            test_human=write_jsonl(tmp_path / "a.jsonl", [human_row(0), human_row(1)]),
            human_val=write_jsonl(tmp_path / "b.jsonl", [human_row(0), human_row(2)]),
        )
    )
    assert "pair_id h-1 (row 2): absent" in text
    assert "pair_id h-2 (row 2): absent" in text


def test_every_moment_needs_its_prompt(tmp_path):
    rows = [train_row(0), train_row(1), train_row(2)]
    prompts = [chat_row(rows[0]), chat_row(rows[1], prompt_id=sha("another prompt"))]
    text = message(
        check(write_folder(tmp_path / "c", train=rows, test=[human_row(0)], prompts=[*prompts, chat_row(human_row(0))]))
    )
    assert "the moment has no row in dpo_prompts.jsonl" in text
    assert "pair_id t-2 (row 3): moment_id m-t-2" in text
    assert "dpo_prompts.jsonl has this moment under another prompt_id" in text


def test_bad_rows_are_refused_or_dropped_with_a_count(tmp_path):
    good, bad = [train_row(n) for n in range(3)], train_row(3, prompt_id=sha("x"))
    path = write_jsonl(tmp_path / "train.jsonl", [*good, bad])
    with pytest.raises(DataError, match=r"pair_id t-3 \(row 4\)(.|\n)*data\.on_bad_row=drop"):
        load_corpus(data_config(train=str(path)))
    corpus = load_corpus(data_config(train=str(path), on_bad_row="drop"))
    assert [pair.pair_id for pair in corpus.train] == ["t-0", "t-1", "t-2"]
    assert list(corpus.dropped.values()) == [1]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"moment_id": "m-h-0"}, "moment_id is in test_human"),
        ({"prompt": prompt_text(0, "h")}, "prompt_id is in test_human"),
        ({"prompt": prompt_text(0, "h").upper()}, "prompt is in test_human"),
        ({"pair_id": "h-0"}, "pair_id is in test_human"),
    ],
)
def test_recipe_chatbot_36_a_leak_is_refused_and_never_dropped(tmp_path, change, kind):
    folder = write_folder(tmp_path / "c", train=[train_row(0), train_row(1, **change)])
    for on_bad_row in ("refuse", "drop"):
        with pytest.raises(DataError, match=rf"leak: the .*{kind}(.|\n)*\(row 2\)"):
            load_corpus(data_config(root=str(folder), on_bad_row=on_bad_row))


def test_the_same_moment_text_with_a_test_ad_is_a_leak_also_under_another_type(tmp_path):
    human = human_row(0)
    prompt = human["prompt"].replace("Moment type: slide", "Moment type: chart")
    sides = {
        side: turns(prompt, human[option][1]["content"]) for side, option in (("chosen", "option_a"), ("rejected", "option_b"))
    }
    found = check(write_folder(tmp_path / "c", train=[train_row(0), train_row(1, prompt=prompt, **sides)]))
    assert "leak: an AD with the same moment text is in test_human" in message(found)


def test_lectures_may_be_shared_and_are_counted(tmp_path):
    found = check(write_folder(tmp_path / "c", train=[train_row(0, lecture="lec-h-0"), train_row(1)]))
    assert found.shared_lectures() == ["lec-h-0"]
    assert not found.problems


def test_seen_in_sft_is_seen_unseen_or_unchecked(folder, tmp_path):
    test = check(folder, keep=("test_human",)).kept["test_human"]
    seen = write_jsonl(tmp_path / "sft.jsonl", [{"prompt_id": test[0].prompt_id, "more": 1}])
    assert list(seen_in_sft(str(seen), test).values()) == ["seen", "unseen", "unseen"]
    assert set(seen_in_sft(None, test).values()) == {"unchecked"}
    with pytest.raises(DataError, match="column prompt_id is missing"):
        seen_in_sft(str(write_jsonl(tmp_path / "bad.jsonl", [{"id": 1}])), test)
