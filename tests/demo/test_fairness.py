"""The corpus can be learned from prompt and description together, and not from either alone."""

import re
import subprocess
import sys

import pytest

from ad4edu_train.demo.audit import audit_new, skeletons
from ad4edu_train.demo.corpus import build_corpus
from ad4edu_train.demo.moments import Settings
from ad4edu_train.demo.phrasing import phrases
from ad4edu_train.demo.topics import library


@pytest.fixture(scope="module")
def claims():
    return {claim.name: claim for claim in audit_new(seed=0)}


def test_every_bar_of_the_audit_holds_at_the_cards_size(claims):
    assert [claim.name for claim in claims.values() if not claim.holds] == []


def test_without_labels_nothing_predicts_and_raters_do_not_agree():
    null = audit_new(seed=0, null_labels=True)
    assert [claim.name for claim in null if not claim.holds] == []


def test_the_right_prompt_is_worth_more_than_another_moments(claims):
    right = claims["fact overlap, right prompt, natural test pairs"].value
    shuffled = claims["fact overlap, shuffled prompts (mean of 5)"].value
    assert right - shuffled > 0.08


def test_there_are_three_hundred_topics_with_own_titles():
    titles = [topic.title for topics in library().values() for topic in topics]
    assert len(titles) >= 300
    assert len(set(titles)) == len(titles)


def test_no_wording_is_in_both_splits():
    bank = phrases()

    def leaves(node):
        if isinstance(node, str):
            return {re.sub(r"\W+", " ", node.lower()).strip()}
        return set().union(*(leaves(child) for child in (node.values() if isinstance(node, dict) else node)))

    for group in ("ads", "openings", "deixis", "terminology", "padding", "too_short"):
        train, test = leaves(bank[group]["train"]), leaves(bank[group]["test"])
        assert train
        assert test
        assert not train & test, group


def test_skeletons_see_a_shared_wording_behind_different_content():
    assert skeletons({"Radial nerve at 12 m/s."}) == skeletons({"Adam at 9 steps."}) == {"_ at _"}


def test_hard_negatives_exist_on_both_sides():
    corpus = build_corpus(Settings(moments=60, seed=0))
    pairs = [row for row in corpus.train if row["axis"] == "deixis"]
    trigger = re.compile(r"\b(this|that|here|there)\b", re.I)
    compliant = [bool(trigger.search(row["chosen"][1]["content"])) for row in pairs]
    defective = [bool(trigger.search(row["rejected"][1]["content"])) for row in pairs]
    assert sum(compliant) / len(pairs) > 0.03
    assert sum(defective) / len(pairs) < 0.95


def test_raters_mostly_side_with_the_compliant_description():
    corpus = build_corpus(Settings(moments=120, seed=0))
    ordered = {row["pair_id"]: row["chosen"] for row in corpus.candidates}
    wins = [
        row[row["human_winner"]] == ordered[row["pair_id"]]
        for row in corpus.test
        if row["stratum"] == "controlled" and row["human_winner"]
    ]
    assert 0.75 < sum(wins) / len(wins) < 0.99


def test_no_topic_is_in_both_splits():
    corpus = build_corpus(Settings(moments=40, seed=5))
    titles = [{m.slide.topic.title for m in corpus.moments if m.plan.split == split} for split in ("train", "test")]
    assert not titles[0] & titles[1]


def test_the_generator_never_imports_the_scorer():
    code = (
        "import sys\n"
        "import ad4edu_train.demo.audit, ad4edu_train.demo.write\n"
        "print([name for name in sys.modules if name.startswith('ad4edu_train.scoring')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
