"""Log-probabilities of ADs under a model, the prompt run once for all ADs of a moment."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ad4edu_train.policy.chat import Rendered

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class LogProb:
    """Summed log-probability of an AD in nats, its end token included, and its number of tokens."""

    total: float
    tokens: int

    @property
    def per_token(self) -> float:
        return self.total / self.tokens


def completion_log_probs(model: Any, prompt_ids: tuple[int, ...], completions: list[tuple[int, ...]]) -> list[LogProb]:
    """Log-probability of each completion behind one prompt.

    The prompt runs once; its keys and values are repeated for the completions, which run as one right-padded batch. Exact for
    models whose attention over the cache equals attention over the whole sequence.
    """
    import torch

    with torch.inference_mode():
        device = model.device
        prompt = torch.tensor([prompt_ids], device=device)
        outputs = model(input_ids=prompt, use_cache=True, logits_to_keep=1)
        first_logits = outputs.logits[0, -1]
        lengths = [len(ids) for ids in completions]
        # The last token of a completion predicts nothing that is asked for.
        width = max(lengths) - 1
        inputs = torch.zeros(len(completions), width, dtype=torch.long, device=device)
        mask = torch.zeros(len(completions), len(prompt_ids) + width, dtype=torch.long, device=device)
        mask[:, : len(prompt_ids)] = 1
        for row, ids in enumerate(completions):
            inputs[row, : len(ids) - 1] = torch.tensor(ids[:-1], device=device)
            mask[row, len(prompt_ids) : len(prompt_ids) + len(ids) - 1] = 1
        cache = outputs.past_key_values
        cache.batch_repeat_interleave(len(completions))
        logits = model(input_ids=inputs, attention_mask=mask, past_key_values=cache, use_cache=True).logits
        return [
            LogProb(_sum_log_probs(first_logits, logits[row, : len(ids) - 1], torch.tensor(ids, device=device)), len(ids))
            for row, ids in enumerate(completions)
        ]


def score_all(
    model: Any, rendered: Iterable[Rendered], tick: Callable[[int], object] = lambda done: None
) -> dict[Rendered, LogProb]:
    """Log-probability of every distinct (prompt, AD); `tick` hears how many prompts are done."""
    by_prompt: dict[tuple[int, ...], list[Rendered]] = {}
    for item in dict.fromkeys(rendered):
        by_prompt.setdefault(item.prompt_ids, []).append(item)
    scores: dict[Rendered, LogProb] = {}
    for prompt_ids, items in by_prompt.items():
        values = completion_log_probs(model, prompt_ids, [item.completion_ids for item in items])
        scores |= dict(zip(items, values, strict=True))
        tick(1)
    return scores


def _sum_log_probs(first_logits: "torch.Tensor", logits: "torch.Tensor", ids: "torch.Tensor") -> float:
    """first_logits (vocabulary,) and logits (tokens - 1, vocabulary) predict ids (tokens,) -> their sum in nats, in float32."""
    import torch

    rows = torch.cat([first_logits[None], logits]).float()
    return float((rows.gather(1, ids[:, None])[:, 0] - rows.logsumexp(dim=1)).double().sum())
