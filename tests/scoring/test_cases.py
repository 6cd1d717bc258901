"""Labelled examples: does each mechanical rule fire where it must, and stay silent where it must not?"""

import json
from pathlib import Path

import pytest
import yaml

from ad4edu_train.scoring import load_standard, moment_from, score
from ad4edu_train.scoring.words import words

HERE = Path(__file__).parent
CASES = [json.loads(line) for line in (HERE / "rule_cases.jsonl").read_text(encoding="utf-8").splitlines()]
RULES = {rule.id: rule for rule in load_standard().rules}
NOW = {old: rule.id for rule in RULES.values() for old in rule.merged_from} | {name: name for name in RULES}
MECHANICAL = [case for case in CASES if RULES[NOW[case["rule_id"]]].tier == "mech"]

# Texts that comply with their own rule and break another one. These speak of another lecture than their context does, so they
# name nothing of that slide, which is what T06 and D06 are about.
FOREIGN = words("""
    D01-3 D03-3 D04-3 D04-4 D06-3 D07-3 F03-3 L05-3 S03-3 S04-3 S04-4 S05-4 S05-5 S06-4 S06-5 S07-3 S09-5 S10-3 S11-4
    S11-5 S11-6 T01-4 T07-3 T08-4 T09-4
    """)
BREAKS_ANOTHER = {
    "D08-4": {"T06", "D06"},  # its note: D06 is what must fire here, for a circle is no name; T06 misses the name too
    "L02-3": {"T06", "L04"},  # a heart text in a mitosis lecture, and one sentence of 42 words
    "L04-3": {"L01"},  # three sentences that take nine seconds, in a pause of seven
    "S03-4": {"T04", "T06"},  # MHC is neither said nor shown in that lecture, nor is anything else of the text
}
OWN = yaml.safe_load((HERE / "paraphrases.yaml").read_text(encoding="utf-8"))
MOMENTS = {name: moment_from(values) for name, values in OWN["contexts"].items()}


def broken(text, context):
    return {finding.rule for finding in score(text, context).findings}


def own(kind):
    return [(rule, *text.split(": ", 1)) for rule, texts in OWN["rules"].items() for text in texts.get(kind, [])]


@pytest.mark.parametrize("case", MECHANICAL, ids=lambda case: case["id"])
def test_labelled_cases_are_judged_right(case):
    assert (NOW[case["rule_id"]] in broken(case["text"], case["context"])) == case["violates"]


@pytest.mark.parametrize("case", [case for case in CASES if not case["violates"]], ids=lambda case: case["id"])
def test_texts_that_comply_break_no_other_mechanical_rule(case):
    allowed = BREAKS_ANOTHER.get(case["id"], {"T06", "D06"} if case["id"] in FOREIGN else set())
    assert broken(case["text"], case["context"]) <= allowed


@pytest.mark.parametrize(("rule", "context", "text"), own("violates"))
def test_own_violations_are_found(rule, context, text):
    assert rule in broken(text, MOMENTS[context])


@pytest.mark.parametrize(("rule", "context", "text"), own("complies"))
def test_own_compliant_texts_break_nothing(rule, context, text):
    allowed = {"D06"} if text == "No description needed." else set()
    assert broken(text, MOMENTS[context]) <= allowed
