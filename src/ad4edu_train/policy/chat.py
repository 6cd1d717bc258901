"""A moment and an AD as token ids: the one rendering for training, agreement and sampling."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Messages = list[dict[str, Any]]


class RenderError(ValueError):
    """A row whose tokens would not be what is meant; the text says how."""


class PrefixMismatch(RenderError):
    """The prompt's tokens are no prefix of the whole conversation's: training would not see what sampling sees."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Token ids of a prompt as it is sampled from, and of one AD up to and including its end token."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]


class Chat:
    """Renders with a tokenizer's chat template.

    `thinking` goes to templates that know `enable_thinking`, the same in training and sampling. Where the template renders the
    prompt alone differently from the prompt in a conversation, `prefix_mismatch` decides: "refuse" raises PrefixMismatch,
    "append" puts the AD behind the prompt as sampling does.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        *,
        thinking: bool,
        prefix_mismatch: Literal["refuse", "append"] = "refuse",
        end_ids: Sequence[int] = (),
    ) -> None:
        self.tokenizer = tokenizer
        self.thinking = thinking
        self.prefix_mismatch = prefix_mismatch
        self.end_ids = frozenset({tokenizer.eos_token_id, *end_ids} - {None})
        self.special_ids = frozenset(tokenizer.all_special_ids) | self.end_ids
        self._prompts: dict[str, tuple[int, ...]] = {}

    def prompt(self, text: str) -> tuple[int, ...]:
        """Ids of a text prompt's user turn, with what opens the assistant's turn. Pairs of a moment share one rendering."""
        if text not in self._prompts:
            ids = self._template([{"role": "user", "content": text}], add_generation_prompt=True)
            self._check_specials(ids, text)
            self._prompts[text] = ids
        return self._prompts[text]

    def render(self, prompt: str, ad: str) -> Rendered:
        """Ids of one side of a pair. Raises RenderError when the AD holds a special token or has no single end token."""
        prompt_ids = self.prompt(prompt)
        whole = self._template([{"role": "user", "content": prompt}, {"role": "assistant", "content": ad}])
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
        return Rendered(prompt_ids, completion)

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

    def _check_specials(self, ids: tuple[int, ...], text: str) -> None:
        if "" not in self._prompts:
            self._prompts[""] = self._template([{"role": "user", "content": ""}], add_generation_prompt=True)
        plain = sum(token in self.special_ids for token in self._prompts[""])
        if sum(token in self.special_ids for token in ids) != plain:
            raise RenderError("the prompt holds chat markup (a special token)")


def _common(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    return next(
        (index for index, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]),
        min(len(first), len(second)),
    )
