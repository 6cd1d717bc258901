"""Whatever a description or its context holds: never a crash, never a value outside [0, 1], never quadratic time."""

import json
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ad4edu_train.scoring import load_standard, moment_from, score, score_sequence
from ad4edu_train.scoring.explain import as_row, as_text

CONTEXT = {
    "moment_type": "pointing",
    "transcript": "so filtrate leaves this one here",
    "ocr": "Nephron Glomerulus Proximal tubule Loop of Henle Distal tubule Collecting duct",
    "on_screen": "A nephron drawn in section; the cursor rests on the loop of Henle.",
    "pause_s": 6.0,
}
PIECES = st.sampled_from(
    [
        "the cursor circles this one here",
        "\x00",
        "\ud800",
        "\u202eabc\u202c",
        "\u200b\u200d",
        "gl\u03bfmerulus",
        "\U0001f600" * 3,
        "<b onclick='x'>",
        "</think>",
        "&amp;",
        "\\frac{a}{b}",
        "$x^2$",
        '{"rating": 1}',
        "```",
        "**",
        "''",
        '"',
        "\u201c",
        "...",
        "?!",
        "\r\n\n",
        "\t",
        "1e400",
        "\u0663\u0664",
        "e\u0301",
        "\ufb01",
        "\u0130",
        "\u1e9e",
        "\u4e2d\u6587",
        "\u0413\u0440\u0435\u0447",
        "E. coli",
        "Fig. 3",
        "3-4",
        "((((",
        "]]]]",
        "|---|",
        "a_b_c",
        "http://",
        "@",
        "I ",
        "this",
        "was",
        "No description needed.",
    ]
)
ANYTHING = st.one_of(st.text(max_size=200), st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=20).map(" ".join))
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    ANYTHING,
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
PAUSES = st.one_of(
    JUNK, st.sampled_from([0, -3, math.nan, math.inf, -math.inf, "8.0 s", "NaN", None, True, 10**400, "1e9", "-1 s"])
)


def in_range(result):
    values = [result.rating, *result.components.values()]
    return all(value is None or 0 <= value <= 1 for value in values) and all(
        math.isfinite(one.cost) and one.cost >= 0 for one in result.findings
    )


@settings(max_examples=400, deadline=None)
@given(ANYTHING)
def test_any_text_gets_ratings_in_range_and_spans_in_the_text(text):
    result = score(text, CONTEXT)
    assert in_range(result)
    assert all(0 <= one.start <= one.end <= len(text) for one in result.findings)
    json.loads(json.dumps(as_row(result)))
    as_text(text, result, load_standard()).encode()


@settings(max_examples=300, deadline=None)
@given(
    JUNK,
    st.fixed_dictionaries({}, optional=dict.fromkeys((*CONTEXT, "gold", "cursor", "ad_mode", "speech_rate_wpm"), JUNK)),
    PAUSES,
)
def test_any_context_gets_ratings_in_range(text, context, pause):
    assert in_range(score(text, context | {"pause_s": pause}))


@settings(max_examples=100, deadline=None)
@given(JUNK, JUNK)
def test_contexts_that_are_no_objects_are_no_context(text, context):
    assert in_range(score(text, moment_from(context)))


@settings(max_examples=100, deadline=None)
@given(st.lists(ANYTHING, max_size=6))
def test_sequences_get_novelty_in_range(texts):
    for one in score_sequence(texts, [CONTEXT] * len(texts)):
        assert 0 <= one.novelty <= 1
        assert one.system_score is None or 0 <= one.system_score <= 1


@pytest.mark.parametrize("pause", [math.nan, math.inf, -math.inf, -3, True, None, "soon", 10**400, [], {}])
def test_a_pause_that_is_no_time_makes_the_length_rule_not_applicable(pause):
    text = "The cursor rests on the loop of Henle and then moves on through the distal tubule."
    assert "L01" not in {one.rule for one in score(text, CONTEXT | {"pause_s": pause}).findings}


@pytest.mark.parametrize("pause", [8.0, 8, "8", "8.0 s", "8 seconds"])
def test_pauses_are_read_as_numbers_and_as_the_prompts_text(pause):
    text = "The cursor rests on the loop of Henle."
    assert score(text, CONTEXT | {"pause_s": pause}) == score(text, CONTEXT | {"pause_s": 8.0})


HOSTILE = {
    "dots": ".",
    "spaces": " ",
    "newlines": "\n",
    "quotes": '"',
    "apostrophes": "'",
    "words": "a ",
    "one word": "a",
    "stars": "*",
    "stars in words": "a*",
    "brackets": "[(",
    "angle": "<a",
    "open tags": "<a ",
    "digits": "1",
    "commas": "1,",
    "hyphens": "1-",
    "capitals": "AB ",
    "sentences": "A. ",
    "emoji": "\U0001f600",
    "surrogates": "\ud800",
    "combining": "e\u0301",
    "underscores": "a_",
    "dollars": "$a",
    "backslashes": "\\a",
    "this": "this ",
    "the cursor": "the cursor ",
    "the left": "to the left ",
    "commas and words": "a, ",
    "ats": "a@",
    "domains": "a.",
    "braces": '{"',
    "equal": "= ",
    "initials": "A. b ",
    "had": "had ",
    "colours": "red red ",
    "question marks": "?",
    "mixed": "'a \"b *c _d ",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("size", [5_900, 100_000])
def test_cost_does_not_explode_with_length(unit, size):
    text = (unit * (size // len(unit) + 1))[:size]
    fair = {**CONTEXT, "transcript": text, "ocr": text, "on_screen": text}
    for context in (CONTEXT, fair) if size > 6_000 else (CONTEXT,):
        started = time.process_time()
        assert in_range(score(text, context))
        assert time.process_time() - started < 1.0


@pytest.mark.parametrize("unit", ["this one here ", "a.", "\u4e2d", "which of these "])
def test_a_large_context_costs_little(unit):
    context = dict.fromkeys(("transcript", "ocr", "on_screen"), unit * (100_000 // len(unit))) | {"moment_type": "figure"}
    started = time.process_time()
    assert in_range(
        score("The cursor rests on the loop of Henle; this one is long, and the blue part is at the left.", context)
    )
    assert time.process_time() - started < 1.0
