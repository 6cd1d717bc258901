"""What a row of pairs must satisfy, each rule with its own sentence. Pure functions: a row in, findings out."""

import hashlib
import unicodedata
from collections.abc import Iterator

from ad4edu_train.data.rows import HumanPair, Pair, shown
from ad4edu_train.data.vocabulary import AXES, CHOICES, COMPONENTS, LABEL_SOURCES, SOURCES, STRATA, TYPES

# Each kind: what is wrong; on the next line why it matters and what to do.
PROMPT_ID = (
    "prompt_id is not the sha256 of the prompt's bytes\n"
    "prompt_id joins pairs to keyframe prompts, so these pairs would train without their images. Export the file again."
)
USER_TURN = (
    "the user turn of a side is not the prompt, byte for byte\n"
    "The model would train on another question than the one the pair answers. Export the file again."
)
EMPTY_AD = "an AD is empty\nThere is nothing to prefer or to train on."
EQUAL_SIDES = "both sides are the same AD\nSuch a pair has no preferred side."
DUPLICATE_ID = "the id stands on an earlier row too\nIds join predictions to pairs, so each must be unique."
WINNER = (
    "human_winner is not what the rater columns give (majority of those who decided; a tie is no vote; an even split is null)\n"
    "Agreement would be measured against a label that no rater majority gave."
)
CHOICE = (
    "a rater column is none of option_a, option_b, tie, null (human_winner: no tie)\n"
    "A vote that cannot be read must not be guessed."
)
UNREADABLE = "the row cannot be read\nMend or remove the line; nothing is skipped silently."
SHAPE = "a column is missing or has the wrong type\nSee docs/data_contract.md for the columns."
REPEATED_MOMENT = "the moment stands on an earlier row too, with the same prompt_id\nA prompt must be sampled and joined once."
DIRECTION = "train_eligible is true, but has_direction is false\nAn eligible pair needs a chosen side."

_COMPONENTS = frozenset(COMPONENTS)


def check_pair(pair: Pair) -> Iterator[tuple[str, str]]:
    """Findings (kind, detail) of one pair, human or preference."""
    if sha256_text(pair.prompt) != pair.prompt_id:
        yield PROMPT_ID, explain_prompt_id(pair.prompt, pair.prompt_id)
    for side in (pair.first, pair.second):
        if side.user != pair.prompt:
            yield USER_TURN, text_difference(side.user, pair.prompt)
            break
    if not pair.first.ad.strip() or not pair.second.ad.strip():
        yield EMPTY_AD, ""
    elif pair.first.ad == pair.second.ad:
        yield EQUAL_SIDES, ""
    if isinstance(pair, HumanPair):
        yield from _check_labels(pair)


def unknown_values(pair: Pair) -> Iterator[tuple[str, str]]:
    """(column, value) of each value that the card's vocabulary does not know."""
    if pair.axis not in AXES:
        yield "axis", pair.axis
    if pair.type not in TYPES:
        yield "type", pair.type
    if pair.source not in SOURCES:
        yield "source", pair.source
    # A human pair may ship no direction: its label is the raters'.
    if pair.label_source not in LABEL_SOURCES and not (isinstance(pair, HumanPair) and pair.label_source is None):
        yield "label_source", str(pair.label_source)
    if isinstance(pair, HumanPair) and pair.stratum not in STRATA:
        yield "stratum", pair.stratum
    for name in {*(pair.first.components or {}), *(pair.second.components or {})} - _COMPONENTS:
        yield "components", name


def majority(choices: list[str | None]) -> str | None:
    """The side that most deciding raters chose; None on an even split or when nobody decided (the card's human_winner)."""
    for_a, for_b = choices.count("option_a"), choices.count("option_b")
    if for_a == for_b:
        return None
    return "option_a" if for_a > for_b else "option_b"


def sha256_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def explain_prompt_id(prompt: str, prompt_id: str) -> str:
    """Which harmless-looking change of the prompt would give the shipped id."""
    unix = prompt.replace("\r\n", "\n")
    if prompt_id.lower() == sha256_text(prompt):
        return "only the case of its hex digits differs"
    variants = {
        "only line ends differ": (unix, unix.replace("\n", "\r\n")),
        "only the Unicode form differs": tuple(unicodedata.normalize(form, prompt) for form in ("NFC", "NFD", "NFKC", "NFKD")),
        "only white space at the ends differs": (prompt.strip(), prompt + "\n", prompt.rstrip()),
    }
    for reason, texts in variants.items():
        if any(sha256_text(text) == prompt_id for text in texts):
            return reason
    return "the text differs"


def text_difference(text: str, expected: str) -> str:
    """How two texts differ, without quoting them."""
    if text.replace("\r\n", "\n") == expected.replace("\r\n", "\n"):
        return "only line ends differ"
    if unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", expected):
        return "only the Unicode form differs"
    if text.strip() == expected.strip():
        return "only white space at the ends differs"
    return "the text differs"


def _check_labels(pair: HumanPair) -> Iterator[tuple[str, str]]:
    unreadable = [f"{rater} is {shown(vote)}" for rater, vote in pair.raters.items() if vote not in (*CHOICES, None)]
    if pair.human_winner not in ("option_a", "option_b", None):
        unreadable.append(f"human_winner is {shown(pair.human_winner)}")
    if unreadable:
        yield CHOICE, ", ".join(unreadable)
        return
    winner = majority(list(pair.raters.values()))
    if pair.human_winner != winner:
        yield WINNER, f"human_winner is {pair.human_winner}, the raters give {winner}"
