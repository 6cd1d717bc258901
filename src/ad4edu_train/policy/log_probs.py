"""Log-probabilities of ADs under a model, the prompt run once for all ADs of a moment."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ad4edu_train.policy.chat import Prompt, Rendered

if TYPE_CHECKING:
    import torch

    from ad4edu_train.policy.vision import Vision


@dataclass(frozen=True, slots=True)
class LogProb:
    """Summed log-probability of an AD in nats, its end token included, and its number of tokens."""

    total: float
    tokens: int

    @property
    def per_token(self) -> float:
        return self.total / self.tokens


def completion_log_probs(
    model: Any, prompt: Prompt, completions: list[tuple[int, ...]], vision: "Vision | None" = None
) -> list[LogProb]:
    """Log-probability of each completion behind one prompt; `vision` reads the prompt's keyframes.

    The prompt runs once, with its images; its keys and values are repeated for the completions, which run as one right-padded
    batch. Exact for models whose attention over the cache equals attention over the whole sequence.
    """
    import torch

    # no_grad, not inference_mode: sharded weights are gathered within the forward and are used again in training.
    with torch.no_grad():
        inputs, after = _prompt_inputs(model, prompt, vision)
        device, prompt_length = model.device, len(prompt.ids)
        outputs = model(**inputs, use_cache=True, logits_to_keep=1)
        first_logits = outputs.logits[0, -1]
        lengths = [len(ids) for ids in completions]
        # The last token of a completion predicts nothing that is asked for.
        width = max(lengths) - 1
        tokens = torch.zeros(len(completions), width, dtype=torch.long, device=device)
        mask = torch.zeros(len(completions), prompt_length + width, dtype=torch.long, device=device)
        mask[:, :prompt_length] = 1
        for row, ids in enumerate(completions):
            tokens[row, : len(ids) - 1] = torch.tensor(ids[:-1], device=device)
            mask[row, prompt_length : prompt_length + len(ids) - 1] = 1
        cache = outputs.past_key_values
        cache.batch_repeat_interleave(len(completions))
        positions = torch.arange(after, after + width, device=device).expand(len(completions), -1)
        if prompt.keyframes:
            positions = positions.expand(3, -1, -1)
        logits = model(
            input_ids=tokens, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True
        ).logits
        return [
            LogProb(_sum_log_probs(first_logits, logits[row, : len(ids) - 1], torch.tensor(ids, device=device)), len(ids))
            for row, ids in enumerate(completions)
        ]


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


def _prompt_inputs(model: Any, prompt: Prompt, vision: "Vision | None") -> tuple[dict[str, Any], int]:
    """Model inputs of a prompt, and the position of the first token behind it."""
    import torch

    inputs = {"input_ids": torch.tensor([prompt.ids], device=model.device)}
    if not prompt.keyframes:
        return inputs, len(prompt.ids)
    if vision is None:
        raise ValueError("a prompt with keyframes needs the model's image processor")
    from ad4edu_train.policy.vision import prompt_positions

    images = {key: value.to(model.device) for key, value in vision.inputs(prompt.keyframes).items()}
    inputs |= images | {"mm_token_type_ids": vision.token_types(inputs["input_ids"])}
    inputs["position_ids"] = prompt_positions(model, inputs)
    return inputs, int(inputs["position_ids"].max()) + 1


def _everyones(scores: dict[Rendered, LogProb]) -> dict[Rendered, LogProb]:
    from accelerate.utils import gather_object

    return dict(gather_object(list(scores.items())))


def _sum_log_probs(first_logits: "torch.Tensor", logits: "torch.Tensor", ids: "torch.Tensor") -> float:
    """first_logits (vocabulary,) and logits (tokens - 1, vocabulary) predict ids (tokens,) -> their sum in nats, in float32."""
    import torch

    rows = torch.cat([first_logits[None], logits]).float()
    return float((rows.gather(1, ids[:, None])[:, 0] - rows.logsumexp(dim=1)).double().sum())
