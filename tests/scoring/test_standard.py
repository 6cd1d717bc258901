"""The rules file, and files of its schema."""

import hashlib
from importlib import resources

import pytest
import yaml

from ad4edu_train.errors import DataError, UserError
from ad4edu_train.scoring import load_standard, score
from ad4edu_train.scoring.checks import MECHANICAL

CONTENT = resources.files("ad4edu_train.scoring").joinpath("rules_for_slides.yaml").read_bytes()


@pytest.fixture
def changed(tmp_path):
    """changed(edit) -> path of the project's rules after `edit` on their values."""

    def write(edit):
        values = yaml.safe_load(CONTENT)
        edit(values)
        path = tmp_path / "rules.yaml"
        path.write_text(yaml.safe_dump(values))
        return path

    return write


def test_the_standard_has_45_rules_in_six_categories_and_its_own_digest():
    standard = load_standard()
    assert len(standard.rules) == 45
    assert {rule.category for rule in standard.rules} == {
        "style",
        "terminology",
        "length",
        "deixis",
        "faithfulness",
        "non_redundancy",
    }
    assert standard.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert all(rule.rationale and rule.text and rule.sources for rule in standard.rules)


def test_every_mechanical_rule_has_a_check_and_every_check_a_rule():
    mechanical = {rule.id for rule in load_standard().rules if rule.tier == "mech" and rule.claims != "sequence"}
    assert mechanical == set(MECHANICAL)


def test_the_mechanical_tier_scores_four_categories_and_the_others_six():
    standard = load_standard()
    assert standard.categories("mech") == ("style", "terminology", "length", "deixis")
    assert len(standard.categories("local")) == len(standard.categories("rubric")) == 6


def test_another_file_changes_the_score_and_its_digest(changed):
    def lighter(values):
        values["scoring"]["severity_weight"]["major"] = 0.1

    other = load_standard(changed(lighter))
    context = {"ocr": "Nephron Glomerulus Loop", "moment_type": "figure"}
    ours, theirs = (score("A stunning glomerulus is drawn.", context, standard=one) for one in (load_standard(), other))
    assert (ours.components["style"], theirs.components["style"]) == (0.5, 0.9)
    assert ours.rules_sha256 != theirs.rules_sha256


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda v: v["rules"][0].pop("severity"), "rule S01: severity is missing"),
        (lambda v: v["rules"][0].update(severity="grave"), "rule S01: severity is grave, not one of critical, major, minor"),
        (lambda v: v["rules"][0].update(category="tone"), "category is tone"),
        (lambda v: v["rules"][0].update(sources=["nowhere"]), "sources names nowhere"),
        (lambda v: v["rules"][0].update(applies_to=["lecture"]), "applies_to names lecture"),
        (lambda v: v["rules"][0].update(colour="red"), "unknown key colour"),
        (lambda v: v["rules"][0].update(id="first"), "a letter and two digits"),
        (lambda v: v["rules"].append(v["rules"][0]), "rule S01 stands there twice"),
        (lambda v: v["scoring"].update(speech_rate_wpm="fast"), "scoring.speech_rate_wpm is fast"),
        (lambda v: v["scoring"]["word_limit"].pop("chart"), "scoring.word_limit is not a map of numbers"),
        (lambda v: v.update(rules="none"), "rules is not a list"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(changed, edit, message):
    with pytest.raises(DataError, match=message):
        load_standard(changed(edit))


def test_a_mechanical_rule_without_a_check_is_refused(changed):
    path = changed(lambda v: v["rules"][0].update(id="Z99"))
    with pytest.raises(DataError, match=r"Z99 .* no check of that id"):
        score("A glomerulus.", {}, standard=load_standard(path))


def test_files_that_cannot_be_read_give_a_message(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        load_standard(tmp_path / "absent.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [")
    with pytest.raises(DataError, match="no YAML"):
        load_standard(bad)
