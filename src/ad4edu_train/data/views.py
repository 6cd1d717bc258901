"""The two views of a moment as a prompt: the card's text column, or the chat prompt of dpo_prompts.jsonl with its keyframes."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from ad4edu_train.data.rows import ChatPrompt, Pair
from ad4edu_train.errors import DataError

Messages = list[dict[str, Any]]
View = Literal["text", "keyframe"]
SHOWN = 20


class Prompts:
    """Chat messages of a pair's moment. `keyframe` joins dpo_prompts.jsonl on prompt_id, and on moment_id where that finds none."""

    def __init__(self, view: View, chats: Iterable[ChatPrompt]) -> None:
        self.view = view
        self._by_prompt: dict[str, ChatPrompt] = {}
        self._by_moment: dict[str, ChatPrompt] = {}
        if view == "keyframe":
            for chat in chats:
                self._by_prompt.setdefault(chat.prompt_id, chat)
                self._by_moment.setdefault(chat.moment_id, chat)

    def of(self, pair: Pair) -> Messages:
        """Messages up to the user's turn. Raises DataError when dpo_prompts.jsonl has no row for the pair."""
        if self.view == "text":
            return [{"role": "user", "content": pair.prompt}]
        chat = self._find(pair)
        if chat is None:
            raise DataError(f"pair_id {pair.pair_id}: dpo_prompts.jsonl has no row for its moment {pair.moment_id}.")
        return chat.messages

    def keyframes(self, pairs: Sequence[Pair]) -> dict[str, list[str]]:
        """Keyframe path -> pair_ids that need it, in order of first use. Empty in the text view.

        Raises DataError that lists every pair without a prompt row, and every one whose prompt has no keyframe.
        """
        if self.view == "text":
            return {}
        found: dict[str, list[str]] = {}
        lacking: list[str] = []
        for pair in pairs:
            chat = self._find(pair)
            if chat is None or not chat.keyframes:
                lacking.append(f"pair_id {pair.pair_id}: {'no row' if chat is None else 'a row without image'}")
                continue
            for name in chat.keyframes:
                found.setdefault(name, []).append(pair.pair_id)
        if lacking:
            more = [f"and {len(lacking) - SHOWN} more"] if len(lacking) > SHOWN else []
            raise DataError(
                f"data.prompt_view=keyframe: {len(lacking)} of {len(pairs)} pairs have no keyframe in dpo_prompts.jsonl, and would train "
                "on text alone:\n"
                + "\n".join(f"  {line}" for line in [*lacking[:SHOWN], *more])
                + "\nGive the file that belongs to "
                "these pairs as data.prompts, or train on data.prompt_view=text."
            )
        return found

    def _find(self, pair: Pair) -> ChatPrompt | None:
        return self._by_prompt.get(pair.prompt_id) or self._by_moment.get(pair.moment_id)
