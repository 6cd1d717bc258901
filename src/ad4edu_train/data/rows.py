"""Typed rows of the data set card: what each file holds once it has been read. See docs/data_contract.md."""

import reprlib
from dataclasses import dataclass
from typing import Any

from ad4edu_train.data.keyframes import refuse_outside
from ad4edu_train.data.messages import MessageError, conversation_of_pair, image_paths, read_messages, text_of
from ad4edu_train.data.vocabulary import COMPONENTS, RATERS

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60
_SHORT.maxlevel = 2


class RowError(ValueError):
    """A value that the row's type cannot hold; the text names the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One AD of a pair. `user` is the user turn it stands in, `rating` and `components` are shipped, never recomputed here."""

    user: str
    ad: str
    model: str | None
    rating: float | None
    components: dict[str, float | None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What every pair carries: two ADs for one lecture moment, and where they come from."""

    pair_id: str
    moment_id: str
    lecture: str
    type: str
    axis: str
    source: str
    label_source: str | None
    cross_family: bool | None
    what_differs: str | None
    prompt: str
    prompt_id: str
    first: Side
    second: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferencePair(Pair):
    """A row of `train_prefs`: `first` is the chosen side, `second` the rejected one."""

    @property
    def chosen(self) -> Side:
        return self.first

    @property
    def rejected(self) -> Side:
        return self.second


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePair(PreferencePair):
    """A row of `dpo_train.jsonl`. `flags` are its boolean columns, which make `train_eligible` inspectable."""

    train_eligible: bool
    flags: dict[str, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanPair(Pair):
    """A row of `test_human`: `first` is option_a, `second` is option_b.

    `machine` choices are evaluation columns, never labels.
    """

    stratum: str
    labels_pending: bool
    raters: dict[str, str | None]
    human_winner: str | None
    machine: dict[str, str | None]
    machine_reasons: dict[str, str | None]

    @property
    def option_a(self) -> Side:
        return self.first

    @property
    def option_b(self) -> Side:
        return self.second


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPrompt:
    """A row of `dpo_prompts.jsonl`: the moment as a chat prompt. Keyframe paths are relative to the keyframes source."""

    prompt_id: str
    moment_id: str
    lecture: str
    type: str | None
    messages: list[dict[str, Any]]

    @property
    def keyframes(self) -> list[str]:
        return image_paths(self.messages)

    @property
    def user_text(self) -> str:
        return "".join(text_of(message["content"]) for message in self.messages if message["role"] == "user")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldMoment:
    """A row of `gold_eval.jsonl`: reference descriptions of a moment. `more` keeps the columns that the card does not name."""

    moment_id: str
    lecture: str | None
    type: str | None
    references: list[str]
    more: dict[str, Any]


def preference_pair(values: dict[str, Any]) -> PreferencePair:
    if values.get("train_eligible") is False:
        raise RowError("train_eligible is false: such a candidate never trains")
    return PreferencePair(**_pair(values, "chosen", "rejected"))


def candidate_pair(values: dict[str, Any]) -> CandidatePair:
    flags = {
        name: value
        for name, value in values.items()
        if isinstance(value, bool) and name not in ("train_eligible", "cross_family")
    }
    return CandidatePair(**_pair(values, "chosen", "rejected"), train_eligible=_boolean(values, "train_eligible"), flags=flags)


def human_pair(values: dict[str, Any]) -> HumanPair:
    machine = {
        name.removeprefix("machine_"): _text_or_null(values, name)
        for name in values
        if name.startswith("machine_") and not name.endswith("_reason")
    }
    pending = _boolean(values, "labels_pending")
    absent = [name for name in (*RATERS, "human_winner") if name not in values]
    if absent and not pending:
        raise RowError(f"column {', '.join(absent)} is missing, though labels_pending is false")
    return HumanPair(
        **_pair(values, "option_a", "option_b"),
        stratum=_text(values, "stratum"),
        labels_pending=pending,
        raters={rater: _text_or_null(values, rater) for rater in RATERS},
        human_winner=_text_or_null(values, "human_winner"),
        machine=machine,
        machine_reasons={family: _text_or_null(values, f"machine_{family}_reason") for family in machine},
    )


def chat_prompt(values: dict[str, Any]) -> ChatPrompt:
    prompt = ChatPrompt(
        prompt_id=_text(values, "prompt_id"),
        moment_id=_text(values, "moment_id"),
        lecture=_text(values, "lecture"),
        type=_text_or_null(values, "type"),
        messages=_messages(values, "messages"),
    )
    if prompt.messages[-1]["role"] != "user":
        raise RowError("messages do not end with a user turn, so there is nothing to answer")
    for path in prompt.keyframes:
        if reason := refuse_outside(path):
            raise RowError(f"keyframe path {shown(path)} {reason}; expected keyframes/<lecture>/<frame>.jpg")
    return prompt


def gold_moment(values: dict[str, Any]) -> GoldMoment:
    references = values.get("references") or []
    if not isinstance(references, list) or not all(isinstance(text, str) for text in references):
        raise RowError("references is not a list of strings")
    known = ("moment_id", "lecture", "type", "references")
    return GoldMoment(
        moment_id=_text(values, "moment_id"),
        lecture=_text_or_null(values, "lecture"),
        type=_text_or_null(values, "type"),
        references=references,
        more={name: value for name, value in values.items() if name not in known},
    )


def _pair(values: dict[str, Any], first: str, second: str) -> dict[str, Any]:
    cross_family = values.get("cross_family")
    if cross_family is not None and not isinstance(cross_family, bool):
        raise RowError(f"cross_family is {shown(cross_family)}, not true or false")
    return {
        "pair_id": _text(values, "pair_id"),
        "moment_id": _text(values, "moment_id"),
        "lecture": _text(values, "lecture"),
        "type": _text(values, "type"),
        "axis": _text(values, "axis"),
        "source": _text(values, "source"),
        "label_source": _text_or_null(values, "label_source"),
        "cross_family": cross_family,
        "what_differs": _text_or_null(values, "what_differs"),
        "prompt": _text(values, "prompt"),
        "prompt_id": _text(values, "prompt_id"),
        "first": _side(values, first),
        "second": _side(values, second),
    }


def _side(values: dict[str, Any], name: str) -> Side:
    try:
        user, ad = conversation_of_pair(_present(values, name))
    except MessageError as error:
        raise RowError(f"{name} {error}") from None
    components = values.get(f"{name}-components")
    if components is not None:
        if not isinstance(components, dict):
            raise RowError(f"{name}-components is not a struct of six scores")
        # All six, and whatever else is shipped: unknown scores are reported and kept.
        keys = (*COMPONENTS, *sorted(key for key, score in components.items() if key not in COMPONENTS and score is not None))
        components = {key: _score(components, key, f"{name}-components.{key}") for key in keys}
    return Side(
        user=user,
        ad=ad,
        model=_text_or_null(values, f"{name}-model"),
        rating=_score(values, f"{name}-rating", f"{name}-rating"),
        components=components,
    )


def _messages(values: dict[str, Any], name: str) -> list[dict[str, Any]]:
    try:
        return read_messages(_present(values, name))
    except MessageError as error:
        raise RowError(f"{name} {error}") from None


def _present(values: dict[str, Any], name: str) -> Any:
    if values.get(name) is None:
        raise RowError(f"{name} is null" if name in values else f"column {name} is missing")
    return values[name]


def _text(values: dict[str, Any], name: str) -> str:
    value = _present(values, name)
    if not isinstance(value, str):
        raise RowError(f"{name} is {shown(value)}, not text")
    if not value:
        raise RowError(f"{name} is empty")
    return value


def _text_or_null(values: dict[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise RowError(f"{name} is {shown(value)}, not text")
    return value


def _boolean(values: dict[str, Any], name: str) -> bool:
    value = _present(values, name)
    if not isinstance(value, bool):
        raise RowError(f"{name} is {shown(value)}, not true or false")
    return value


def _score(values: dict[str, Any], name: str, column: str) -> float | None:
    value = values.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise RowError(f"{column} is {shown(value)}, not a score in [0, 1] or null")
    return float(value)


def shown(value: Any) -> str:
    """A value for an error message: at most a line long, however large or deeply nested it is."""
    return _SHORT.repr(value)
