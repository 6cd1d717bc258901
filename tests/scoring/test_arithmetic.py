"""The arithmetic of a score, point by point."""

import pytest

from ad4edu_train.scoring import Moment, load_standard, score, score_many, score_sequence
from ad4edu_train.scoring.checks.phrases import Hit
from ad4edu_train.scoring.scorer import charge, mean_rating
from ad4edu_train.scoring.speech import number_words, spoken_words
from ad4edu_train.scoring.text import words_of

MOMENT = Moment(
    moment_type="pointing",
    transcript="so filtrate leaves this one here and runs down",
    ocr="Nephron Glomerulus Proximal tubule Loop of Henle Distal tubule Collecting duct",
    on_screen="A nephron drawn in section; the cursor rests on the loop of Henle.",
    pause_s=8.0,
)
CLEAN = "The cursor rests on the loop of Henle."
SCORED = ("style", "terminology", "length", "deixis")
STANDARD = load_standard()


def with_(**changes):
    return Moment(
        **{name: getattr(MOMENT, name) for name in ("moment_type", "transcript", "ocr", "on_screen", "pause_s")} | changes
    )


def costs(text, moment=MOMENT):
    return {finding.rule: finding.cost for finding in score(text, moment).findings if finding.cost}


def test_a_clean_description_scores_one_and_mech_abstains_on_two_categories():
    result = score(CLEAN, MOMENT)
    assert result.rating == 1.0
    assert result.components == dict.fromkeys(SCORED, 1.0) | {"faithfulness": None, "non_redundancy": None}
    assert (result.scorer_id, result.rules_sha256) == ("lecture-ad-clean/1.0.0/mech", STANDARD.sha256)


def test_the_rating_is_the_mean_of_the_components_that_are_not_null():
    result = score("Beautifully, the cursor rests on the loop of Henle.", MOMENT)
    assert result.components["style"] == 0.5  # one major rule
    assert result.rating == pytest.approx((0.5 + 1 + 1 + 1) / 4)
    no_cursor = score("Beautifully, the cursor rests on the loop of Henle.", with_(cursor=False))
    assert no_cursor.components["deixis"] is None
    assert no_cursor.rating == pytest.approx((0.5 + 1 + 1) / 3, abs=1e-6)


def test_all_null_components_are_unscored():
    assert mean_rating(dict.fromkeys(SCORED), 6) is None


@pytest.mark.parametrize(
    ("text", "rule", "cost"),
    [
        ("Beautifully, the cursor rests on the loop of Henle.", "S07", 0.5),
        ("**The cursor** rests on the loop of Henle.", "S09", 1.0),
        ("The cursor rests on the loop of Henle", "S11", 0.25),
        ("The cursor rests on this one, the loop of Henle.", "D01", 0.5),
    ],
)
def test_a_rule_costs_its_severity(text, rule, cost):
    assert costs(text)[rule] == cost


def test_a_rule_that_is_broken_twice_costs_once():
    once, twice = "A stunning loop of Henle is drawn.", "A stunning loop of Henle is drawn beside a stunning glomerulus."
    assert costs(once)["S07"] == costs(twice)["S07"] == 0.5
    assert len([one for one in score(twice, MOMENT).findings if one.rule == "S07"]) == 2


def test_a_category_never_falls_below_zero():
    result = score("**Sure, here is the audio description:** I see a stunning image, perhaps", MOMENT)
    assert result.components["style"] == 0.0


def test_one_vague_word_is_charged_once_over_all_rules():
    result = score("The cursor circles something.", MOMENT)
    assert {"T06", "T07", "D06", "D08"} <= {one.rule for one in result.findings}
    assert {one.rule for one in result.findings if one.cost} == {"D06"}  # the most severe
    assert result.components["terminology"] == 1.0


def test_a_span_goes_to_the_most_severe_rule_and_to_file_order_among_equals():
    rules = {rule.id: rule for rule in STANDARD.rules}
    hit = Hit(3, 9)
    paid = {one.rule: one.cost for one in charge([(rules["S08"], hit), (rules["S03"], hit), (rules["S01"], hit)], STANDARD)}
    assert paid == {"S01": 0.5, "S03": 0.0, "S08": 0.0}
    apart = {one.rule: one.cost for one in charge([(rules["S01"], Hit(0, 3)), (rules["S03"], Hit(3, 9))], STANDARD)}
    assert apart == {"S01": 0.5, "S03": 0.5}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\t",
        "...",
        "!?",
        "\u4e2d\u6587\u8bf4\u660e",
        "\u041a\u0443\u0440\u0441\u043e\u0440 \u0437\u0434\u0435\u0441\u044c",
        "word " * 401,
        "a" * 6001,
        None,
        7,
        ["x"],
    ],
)
def test_empty_and_unusable_texts_score_zero_and_not_null(text):
    result = score(text, MOMENT)
    assert result.components == dict.fromkeys(SCORED, 0.0) | {"faithfulness": None, "non_redundancy": None}
    assert result.rating == 0.0
    assert score(text, with_(cursor=False)).components["deixis"] is None


def test_length_follows_the_speaking_time():
    # 24 words at 160 a minute take 9 s; 6 s with tolerance 1.1 leave 6.6 s: 9 / 6.6 - 1 of a critical rule.
    text = (
        "The cursor rests on the loop of Henle, moves along the distal tubule, rests on the collecting "
        "duct and returns to the glomerulus again."
    )
    assert spoken_words(text, len(words_of(text))) == 24
    assert costs(text, with_(pause_s=6.0))["L01"] == pytest.approx(9 / 6.6 - 1, abs=1e-6)
    assert "L01" not in costs(text, with_(pause_s=9 / 1.1))
    assert costs(text, with_(pause_s=0.0))["L01"] == 1.0  # standard mode: no pause is full overrun
    assert "L01" not in costs(text, with_(pause_s=None))
    assert costs(text, with_(pause_s=6.0, speech_rate_wpm=120.0))["L01"] == pytest.approx(12 / 6.6 - 1, abs=1e-6)


def test_added_pause_time_caps_length_in_extended_mode():
    text = "The cursor rests on the loop of Henle. " + "It moves along the distal tubule to the collecting duct. "
    assert costs(text, with_(pause_s=0.0, ad_mode="extended", moment_type="figure")).get("L01") is None
    assert costs(text, with_(pause_s=None, ad_mode="extended", moment_type="figure")).get("L01") is None
    words = spoken_words(text, len(words_of(text)))
    hybrid = costs(text, with_(pause_s=0.0, ad_mode="hybrid", moment_type="figure"))["L01"]
    assert hybrid == pytest.approx(min(1, words * 60 / 160 / (1.1 * 5) - 1), abs=1e-6)
    long = text * 5
    seconds = spoken_words(long, len(words_of(long))) * 60 / 160
    assert costs(long, with_(pause_s=0.0, ad_mode="extended"))["L01"] == pytest.approx(min(1, seconds / 22 - 1), abs=1e-6)


@pytest.mark.parametrize(
    ("figure", "count"),
    [
        ("0", 1),
        ("20", 1),
        ("21", 2),
        ("100", 2),
        ("347", 5),
        ("1,000", 2),
        ("0.25", 4),
        ("12.5", 3),
        ("1984", 3),
        ("125,000", 6),
        ("9" * 20, 20),
    ],
)
def test_figures_are_counted_as_they_are_spoken(figure, count):
    assert number_words(figure) == count


def test_spoken_words_expand_percent_signs_acronyms_and_hyphens():
    for text, count in (("5%", 2), ("DNA", 3), ("NASA", 1), ("two-way", 2), ("Validation loss rises after epoch 20.", 6)):
        assert spoken_words(text, len(words_of(text))) == count


def test_no_description_needed_is_valid_unless_the_lecturer_points():
    assert score("No description needed.", with_(moment_type="slide", transcript="mitosis has four phases")).rating == 1.0
    pointed = score("No description needed.", MOMENT)
    assert {one.rule for one in pointed.findings} == {"D06"}
    assert pointed.components["deixis"] == 0.0


def test_novelty_scales_by_the_largest_overlap_with_what_was_said_before():
    first = "The cursor rests on the loop of Henle."  # eight words, six trigrams
    half = "The cursor rests on the collecting duct now."  # shares: the cursor rests, cursor rests on, rests on the
    new = "Filtrate enters a glomerulus."
    results = score_sequence([first, half, first, new], [MOMENT] * 4)
    assert [one.novelty for one in results] == [1.0, 0.5, 0.0, 1.0]
    assert results[1].system_score == results[1].score.rating  # novelty 0.5 is more than 0.4
    assert results[2].system_score == 0.0
    overlap = score_sequence([first, "The cursor rests on the loop of water."], [MOMENT] * 2)[1]
    assert overlap.novelty == pytest.approx(1 / 6, abs=1e-6)
    assert overlap.system_score == pytest.approx(overlap.score.rating * (1 / 6) / 0.4, abs=1e-5)


def test_single_scores_know_no_novelty():
    assert [one.rating for one in score_many([CLEAN, CLEAN], [MOMENT, MOMENT])] == [1.0, 1.0]


def test_declined_moments_have_no_system_score_and_repeat_nothing():
    results = score_sequence(["No description needed.", CLEAN, "No description needed."], [MOMENT] * 3)
    assert [one.declined for one in results] == [True, False, True]
    assert [one.system_score for one in results] == [None, 1.0, None]


def test_one_thing_keeps_its_name_through_a_sequence():
    moments = [with_(transcript="and down", on_screen="A nephron drawn in section with its tubules.")] * 3
    texts = [CLEAN, "The pointer rests on the collecting duct.", "Across the nephron, the cursor follows the distal tubule."]
    results = score_sequence(texts, moments)
    assert [[one.rule for one in result.score.findings] for result in results] == [[], ["T11"], []]
    assert results[1].score.components["terminology"] == 0.75
    assert score(texts[1], moments[1]).rating == 1.0  # by itself nothing is renamed


def test_critical_violations_are_counted_when_they_cost():
    assert score(CLEAN, MOMENT).critical == 0
    assert score("**The cursor** rests on the loop of Henle.", MOMENT).critical == 1
