"""Pairs rendered once before anything is trained: what the model will see, counted, or refused by pair_id."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ad4edu_train.data.rows import Pair
from ad4edu_train.data.views import Prompts
from ad4edu_train.errors import DataError
from ad4edu_train.policy.chat import Chat, PrefixMismatch, Rendered, RenderError

SHOWN = 20


@dataclass(frozen=True, slots=True)
class RenderedPair:
    """A pair and the token ids of its sides: `first` is chosen (or option_a), `second` rejected (or option_b)."""

    pair: Pair
    first: Rendered
    second: Rendered

    @property
    def longest(self) -> int:
        """Tokens of the longer side, prompt included."""
        return len(self.first.prompt_ids) + max(len(self.first.completion_ids), len(self.second.completion_ids))


@dataclass(frozen=True, kw_only=True)
class TokenStatistics:
    """Tokens of the pairs that are kept."""

    pairs: int
    prompt_mean: float
    prompt_max: int
    ad_mean: float
    ad_max: int
    longest: int


@dataclass(kw_only=True)
class Preflight:
    """Rendered pairs, and what was left out: `too_long` counts by moment type, `mismatched` prompts that are no prefix."""

    pairs: list[RenderedPair] = field(default_factory=list)
    too_long: Counter[str] = field(default_factory=Counter)
    mismatched: int = 0

    def statistics(self) -> TokenStatistics:
        prompts = [len(item.first.prompt_ids) for item in self.pairs]
        ads = [len(side.completion_ids) for item in self.pairs for side in (item.first, item.second)]
        return TokenStatistics(
            pairs=len(self.pairs),
            prompt_mean=round(sum(prompts) / max(1, len(prompts)), 1),
            prompt_max=max(prompts, default=0),
            ad_mean=round(sum(ads) / max(1, len(ads)), 1),
            ad_max=max(ads, default=0),
            longest=max((item.longest for item in self.pairs), default=0),
        )


def render_pairs(
    pairs: Sequence[Pair], prompts: Prompts, chat: Chat, *, max_tokens: int, too_long: Literal["refuse", "drop"]
) -> Preflight:
    """Render every pair. Nothing is truncated: a pair over `max_tokens` (prompt and AD) is refused, or dropped and counted.

    Raises DataError that names every pair whose tokens would not be what is meant.
    """
    result = Preflight()
    broken: list[str] = []
    long: list[RenderedPair] = []
    for pair in pairs:
        try:
            messages = prompts.of(pair)
            item = RenderedPair(pair, chat.render(messages, pair.first.ad), chat.render(messages, pair.second.ad))
        except PrefixMismatch as error:
            result.mismatched += 1
            broken.append(f"pair_id {pair.pair_id}: {error}")
            continue
        except RenderError as error:
            broken.append(f"pair_id {pair.pair_id}: {error}")
            continue
        if item.longest <= max_tokens:
            result.pairs.append(item)
        else:
            result.too_long[pair.type] += 1
            long.append(item)
    if broken:
        raise DataError(_mismatch_message(len(pairs), broken, result.mismatched))
    if long and too_long == "refuse":
        raise DataError(
            f"{len(long)} of {len(pairs)} pairs are longer than data.max_tokens={max_tokens} (prompt and AD together):\n"
            + _listed([_length(item, chat) for item in sorted(long, key=lambda item: -item.longest)])
            + "\nA cut AD trains the model to stop in mid-sentence. Raise data.max_tokens (or lower data.max_pixels), or leave them "
            "out with data.too_long=drop (counted in run.json)."
        )
    return result


def _length(item: RenderedPair, chat: Chat) -> str:
    images = sum(chat.vision.tokens(name) for name in item.first.keyframes) if chat.vision else 0
    of_them = f", {images} of them of {len(item.first.keyframes)} keyframes" if images else ""
    return f"pair_id {item.pair.pair_id}: {item.longest} tokens{of_them}"


def _mismatch_message(total: int, broken: list[str], mismatched: int) -> str:
    advice = "Mend these rows, or leave them out of the data."
    if mismatched:
        advice = (
            f"{mismatched} of them: the model would be trained on another context than it is sampled in. Set model.thinking to "
            "what sampling uses, or data.prefix_mismatch=append to put the AD behind the prompt exactly as sampling does."
        )
    return f"{len(broken)} of {total} pairs cannot be rendered with this model's chat template:\n{_listed(broken)}\n{advice}"


def _listed(lines: list[str]) -> str:
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join(f"  {line}" for line in [*lines[:SHOWN], *more])
