"""Log-probabilities of ADs under a model, the prompt run once for all ADs of a moment."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ad4edu_train.policy.chat import Prompt, Rendered
from ad4edu_train.policy.vision import prompt_positions

if TYPE_CHECKING:
    import torch

    from ad4edu_train.policy.vision import Vision


@dataclass(frozen=True, slots=True)
class LogProb:
    """Summed log-probability of an AD in nats, its end token included, and its number of tokens.

    `values` are the tokens' own; empty where only the sum was kept.
    """

    total: float
    tokens: int
    values: tuple[float, ...] = ()

    @property
    def per_token(self) -> float:
        return self.total / self.tokens


def completion_log_probs(
    model: Any, prompt: Prompt, completions: list[tuple[int, ...]], vision: "Vision | None" = None
) -> list[LogProb]:
    """Log-probability of each completion behind one prompt; `vision` reads the prompt's keyframes.

    The prompt runs once, with its images: as a moment tree, the way it trains, or for architectures that no packed row is proved
    for, with its keys and values kept for the completions.
    """
    import torch

    from ad4edu_train.policy import tree_attention

    score = _as_tree if tree_attention.enabled(model) else behind_cache
    # no_grad, not inference_mode: sharded weights are gathered within the forward and are used again in training.
    with torch.no_grad():
        found = score(model, prompt, completions, vision)
    return [LogProb(float(values.double().sum()), len(values), tuple(values.tolist())) for values in found]


def score_all(
    model: Any,
    rendered: Iterable[Rendered],
    tick: Callable[[int], object] = lambda done: None,
    *,
    vision: "Vision | None" = None,
    rank: int = 0,
    ranks: int = 1,
) -> dict[Rendered, LogProb]:
    """Log-probability of every distinct (prompt, AD); `tick` hears how many prompts are done.

    With several processes each takes a share of the prompts and gets everyone's values. All make the same number of forwards:
    under sharding a forward is a meeting of all ranks, and one that stays away hangs the others.
    """
    by_prompt: dict[Prompt, list[Rendered]] = {}
    for item in dict.fromkeys(rendered):
        by_prompt.setdefault(item.prompt, []).append(item)
    prompts = list(by_prompt)
    scores: dict[Rendered, LogProb] = {}
    for turn in range(math.ceil(len(prompts) / ranks)):
        number = turn * ranks + rank
        # A rank without a prompt left runs the last one too; its values are the same, so nothing counts twice.
        prompt = prompts[min(number, len(prompts) - 1)]
        items = by_prompt[prompt]
        values = completion_log_probs(model, prompt, [item.completion_ids for item in items], vision)
        scores |= dict(zip(items, values, strict=True))
        tick(min(ranks, len(prompts) - turn * ranks))
    return _everyones(scores) if ranks > 1 else scores


def _as_tree(model: Any, prompt: Prompt, completions: list[tuple[int, ...]], vision: "Vision | None") -> "list[torch.Tensor]":
    from ad4edu_train.policy.moment_tree import score_trees
    from ad4edu_train.policy.tree_layout import Tree

    return score_trees(model, [Tree(prompt.ids, tuple(completions))], _images(model, prompt, vision))[0]


def behind_cache(
    model: Any, prompt: Prompt, completions: list[tuple[int, ...]], vision: "Vision | None"
) -> "list[torch.Tensor]":
    """Keys and values of the prompt repeated for the completions, which run as one right-padded batch."""
    import torch

    device, prompt_length = model.device, len(prompt.ids)
    images = _images(model, prompt, vision)
    inputs = {"input_ids": torch.tensor([prompt.ids], device=device), **images}
    if vision is not None and images:
        inputs |= {"mm_token_type_ids": vision.token_types(inputs["input_ids"])}
        inputs["position_ids"] = prompt_positions(model, inputs)
    after = int(inputs["position_ids"].max()) + 1 if "position_ids" in inputs else prompt_length
    outputs = model(**inputs, use_cache=True, logits_to_keep=1)
    # The last token of a completion predicts nothing that is asked for.
    width = max(map(len, completions)) - 1
    tokens = torch.zeros(len(completions), width, dtype=torch.long, device=device)
    mask = torch.zeros(len(completions), prompt_length + width, dtype=torch.long, device=device)
    mask[:, :prompt_length] = 1
    for row, ids in enumerate(completions):
        tokens[row, : len(ids) - 1] = torch.tensor(ids[:-1], device=device)
        mask[row, prompt_length : prompt_length + len(ids) - 1] = 1
    cache = outputs.past_key_values
    cache.batch_repeat_interleave(len(completions))
    positions = torch.arange(after, after + width, device=device).expand(len(completions), -1)
    if "position_ids" in inputs:
        positions = positions.expand(3, -1, -1)
    logits = model(input_ids=tokens, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True).logits
    found = []
    for row, ids in enumerate(completions):
        rows = torch.cat([outputs.logits[0, -1:], logits[row, : len(ids) - 1]]).float()
        found.append(rows.gather(1, torch.tensor(ids, device=device)[:, None])[:, 0] - rows.logsumexp(dim=1))
    return found


def _images(model: Any, prompt: Prompt, vision: "Vision | None") -> "dict[str, torch.Tensor]":
    if not prompt.keyframes:
        return {}
    if vision is None:
        raise ValueError("a prompt with keyframes needs the model's image processor")
    return {key: value.to(model.device) for key, value in vision.inputs(prompt.keyframes).items()}


def _everyones(scores: dict[Rendered, LogProb]) -> dict[Rendered, LogProb]:
    from accelerate.utils import gather_object

    return dict(gather_object(list(scores.items())))
