"""A moment and an AD as token ids: the one rendering for training, agreement and sampling."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ad4edu_train.data.messages import image_paths, text_of
from ad4edu_train.data.views import Messages

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from ad4edu_train.policy.vision import Vision


class RenderError(ValueError):
    """A row whose tokens would not be what is meant; the text says how."""


class PrefixMismatch(RenderError):
    """The prompt's tokens are no prefix of the whole conversation's: training would not see what sampling sees."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Token ids of a prompt as it is sampled from, its keyframes in order, and one AD up to and including its end token.

    Placeholder tokens are the same for every image, so a prompt is told apart by `prompt_ids` and `keyframes` together.
    """

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    keyframes: tuple[str, ...] = ()

    @property
    def prompt(self) -> "Prompt":
        return Prompt(self.prompt_ids, self.keyframes)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt: what every AD of its moment stands behind."""

    ids: tuple[int, ...]
    keyframes: tuple[str, ...] = ()


class Chat:
    """Renders with a tokenizer's chat template.

    `thinking` goes to templates that know `enable_thinking`, the same in training and sampling. Where the template renders the
    prompt alone differently from the prompt in a conversation, `prefix_mismatch` decides: "refuse" raises PrefixMismatch,
    "append" puts the AD behind the prompt as sampling does. Prompts with images need `vision`, which knows their sizes.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        *,
        thinking: bool,
        prefix_mismatch: Literal["refuse", "append"] = "refuse",
        end_ids: Sequence[int] = (),
        vision: "Vision | None" = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.thinking = thinking
        self.prefix_mismatch = prefix_mismatch
        self.end_ids = frozenset({tokenizer.eos_token_id, *end_ids} - {None})
        self.special_ids = frozenset(tokenizer.all_special_ids) | self.end_ids
        self.vision = vision
        self._prompts: dict[str, Prompt] = {}
        self._markup: dict[str, int] = {}

    def prompt(self, messages: Messages) -> Prompt:
        """A prompt's messages with what opens the assistant's turn. Pairs of a moment share one rendering."""
        key = json.dumps(messages)
        if key not in self._prompts:
            ids = self._template(messages, add_generation_prompt=True)
            if sum(token in self.special_ids for token in ids) != self._markup_of(messages):
                raise RenderError("the prompt holds chat markup (a special token)")
            names = tuple(image_paths(messages))
            self._check_placeholders(ids, messages, names)
            self._prompts[key] = Prompt(self._expand(ids, names), names)
        return self._prompts[key]

    def render(self, messages: Messages, ad: str) -> Rendered:
        """One side of a pair. Raises RenderError when the AD holds a special token or has no single end token."""
        prompt = self.prompt(messages)
        prompt_ids = prompt.ids
        whole = self._expand(self._template([*messages, self._assistant(messages, ad)]), prompt.keyframes)
        if whole[: len(prompt_ids)] == prompt_ids:
            tail = whole[len(prompt_ids) :]
        elif self.prefix_mismatch == "append":
            tail = (*self.tokenizer(ad, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id)
        else:
            start = _common(prompt_ids, whole)
            raise PrefixMismatch(
                f"the prompt ends in {self._text(prompt_ids[start:])!r} when sampled from, "
                f"but goes on with {self._text(whole[start : start + 12])!r} in the conversation"
            )
        ends = [index for index, token in enumerate(tail) if token in self.end_ids]
        if not ends:
            raise RenderError("the chat template puts no end token behind the AD, so the model would not learn to stop")
        completion = tail[: ends[0] + 1]
        # Templates put white space behind the end token; it is never sampled. Anything else there was in the AD itself.
        if self._text(tail[ends[0] + 1 :]).strip() or any(token in self.special_ids for token in completion[:-1]):
            raise RenderError("the AD holds chat markup (a special token)")
        if len(completion) < 2:
            raise RenderError("the AD has no tokens")
        return Rendered(prompt_ids, completion, prompt.keyframes)

    def _template(self, messages: Messages, *, add_generation_prompt: bool = False) -> tuple[int, ...]:
        ids = self.tokenizer.apply_chat_template(
            messages,
            add_generation_prompt=add_generation_prompt,
            tokenize=True,
            return_dict=False,
            enable_thinking=self.thinking,
        )
        return tuple(ids)

    def _text(self, ids: tuple[int, ...]) -> str:
        return str(self.tokenizer.decode(list(ids)))

    def _markup_of(self, messages: Messages) -> int:
        """Special tokens that the template itself sets: those of the same turns and images without any text."""
        skeleton = [{**message, "content": _without_text(message["content"])} for message in messages]
        key = json.dumps(skeleton)
        if key not in self._markup:
            ids = self._template(skeleton, add_generation_prompt=True)
            self._markup[key] = sum(token in self.special_ids for token in ids)
        return self._markup[key]

    def _assistant(self, messages: Messages, ad: str) -> dict[str, Any]:
        # Templates of vision models loop over blocks; a turn is given in the form that the prompt has.
        blocks = any(not isinstance(message["content"], str) for message in messages)
        return {"role": "assistant", "content": [{"type": "text", "text": ad}] if blocks else ad}

    def _check_placeholders(self, ids: tuple[int, ...], messages: Messages, names: tuple[str, ...]) -> None:
        """One placeholder an image, and every text of the prompt in the rendering: templates lose either without a word."""
        if not names:
            return
        if self.vision is None:
            raise RenderError("the prompt has images, but the model's image processor was not loaded (data.prompt_view)")
        placeholders = ids.count(self.vision.image_token_id)
        if placeholders != len(names):
            raise RenderError(f"the chat template sets {placeholders} image placeholders for {len(names)} images")
        rendered = self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False, enable_thinking=self.thinking
        )
        lost = [text for message in messages if (text := text_of(message["content"]).strip()) and text not in str(rendered)]
        if lost:
            raise RenderError(f"the chat template drops a text of the prompt ({lost[0][:40]!r} ...)")

    def _expand(self, ids: tuple[int, ...], names: tuple[str, ...]) -> tuple[int, ...]:
        """Each image placeholder repeated to the number of tokens that its keyframe takes."""
        if not names or self.vision is None:
            return ids
        waiting = list(names)
        out: list[int] = []
        for token in ids:
            out.extend([token] * (self.vision.tokens(waiting.pop(0)) if token == self.vision.image_token_id and waiting else 1))
        return tuple(out)


def _without_text(content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return ""
    return [{**block, "text": ""} if block["type"] == "text" else block for block in content]


def _common(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    return next(
        (index for index, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]),
        min(len(first), len(second)),
    )
