from hypothesis import given
from hypothesis import strategies as st

from ad4edu_train.data.prompt_fields import LABELS, parse_prompt

PROMPT = (
    "Moment type: pointing\nLecturer said: so this one\nand, as I said: that one\nOn-screen text (OCR): Atrium: left\n"
    "What is on screen: A heart.\n\nTwo arrows.\nPause available: 3.2 s"
)


def test_values_over_several_lines():
    fields = parse_prompt(PROMPT)
    assert fields.moment_type == "pointing"
    assert fields.transcript == "so this one\nand, as I said: that one"
    assert fields.ocr == "Atrium: left"
    assert fields.on_screen == "A heart.\n\nTwo arrows."
    assert fields.pause_s == 3.2


def test_line_ends_do_not_matter():
    assert parse_prompt(PROMPT.replace("\n", "\r\n")) == parse_prompt(PROMPT)


def test_missing_fields_are_none_and_empty_ones_empty():
    fields = parse_prompt("Moment type: math\nOn-screen text (OCR):\nPause available: unknown")
    assert (fields.moment_type, fields.transcript, fields.ocr, fields.on_screen) == ("math", None, "", None)
    assert fields.pause_s is None
    assert parse_prompt("no field at all").moment_type is None


def test_labels_quoted_inside_a_value_open_no_field():
    quoted = PROMPT.replace("so this one", "I write What is on screen: and\nWhat is on screen: a quote\nMoment type: a quote")
    fields = parse_prompt(quoted)
    assert fields.on_screen == "A heart.\n\nTwo arrows."
    assert "What is on screen: a quote\nMoment type: a quote" in fields.transcript


VALUE = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=60).filter(
    lambda text: not any(line.startswith(tuple(f"{label}:" for label in LABELS.values())) for line in text.split("\n"))
)


@given(st.dictionaries(st.sampled_from(list(LABELS)), VALUE))
def test_what_is_written_is_read_back(values):
    written = "\n".join(f"{label}: {values[name]}" for name, label in LABELS.items() if name in values)
    fields = parse_prompt(written)
    for name in LABELS:
        assert getattr(fields, name) == (values[name].strip() if name in values else None)
