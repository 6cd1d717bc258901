"""Proof on the first batch that the moment tree gives this model's numbers, as closely as this model itself repeats them.

Rows in one padded batch are the measure. How far rounding alone leads from it is seen from the model's own other ways to the same
numbers: rows one by one, and completions behind the cached keys and values of their prompt. A batch of one is not enough to see it:
padding hardly changes the order of any sum, while another split of the sequence does.
"""

from dataclasses import dataclass
from typing import Any

import torch

from ad4edu_train.errors import UserError
from ad4edu_train.policy.log_probs import behind_cache
from ad4edu_train.policy.moment_tree import score_trees
from ad4edu_train.policy.tree_layout import Tree
from ad4edu_train.training.batches import PairCollator

PAIRS = 2
# How much further from a padded batch the tree may be than the model's own other ways are.
FACTOR = 3.0


@dataclass(frozen=True, kw_only=True)
class LayoutCheck:
    """Largest differences of a token's log-prob from a padded batch, in nats: the tree's, and those of the model's other ways."""

    pairs: int
    tree: float
    noise: float

    @property
    def passed(self) -> bool:
        return self.tree <= FACTOR * self.noise


def compare(model: Any, collator: PairCollator, indices: list[int]) -> LayoutCheck:
    """Log-probs of the first pairs' ADs from the tree, from a padded batch, from rows one by one, and behind a cache."""
    items = [collator.pairs[index] for index in indices[:PAIRS]]
    sides = [side for item in items for side in (item.first, item.second)]
    vision = collator.vision
    prompts = list(dict.fromkeys(side.prompt for side in sides))
    completions = {prompt: tuple(dict.fromkeys(s.completion_ids for s in sides if s.prompt == prompt)) for prompt in prompts}
    names = [name for prompt in prompts for name in prompt.keyframes]
    images = {key: value.to(model.device) for key, value in vision.inputs(names).items()} if vision and names else {}
    training = model.training
    model.eval()
    with torch.no_grad():
        found = score_trees(model, [Tree(prompt.ids, completions[prompt]) for prompt in prompts], images)
        tree = {
            (prompt, ids): values
            for prompt, row in zip(prompts, found, strict=True)
            for ids, values in zip(completions[prompt], row, strict=True)
        }
        padded = _stock(model, collator, sides)
        alone = [value for side in sides for value in _stock(model, collator, [side])]
        cached = [value for side in sides for value in behind_cache(model, side.prompt, [side.completion_ids], vision)]
    model.train(training)
    from_tree = [tree[side.prompt, side.completion_ids] for side in sides]
    return LayoutCheck(
        pairs=len(items),
        tree=_largest(from_tree, padded),
        noise=max(_largest(alone, padded), _largest(cached, padded), _rounding(padded)),
    )


def check_layout(model: Any, collator: PairCollator, indices: list[int]) -> LayoutCheck:
    """Compare, print both figures, and raise UserError when the tree is further away than rounding explains."""
    result = compare(model, collator, indices)
    print(
        f"Layout check on {result.pairs} pairs: a token's log-prob in the moment tree differs from a padded batch by at most "
        f"{result.tree:.2g} nats, in the model's own other ways by up to {result.noise:.2g}."
    )
    if not result.passed:
        raise UserError(
            f"trainer.layout=moment_tree does not give this model's own numbers: {result.tree:.2g} nats off, where {FACTOR:g} x "
            f"{result.noise:.2g} is what rounding explains. Nothing was trained. Use trainer.layout=stock, and report the model."
        )
    return result


def _stock(model: Any, collator: PairCollator, sides: list[Any]) -> list[torch.Tensor]:
    """Log-probs (tokens,) of each side from whole rows, right-padded to the longest."""
    width = max(len(side.prompt_ids + side.completion_ids) for side in sides)
    ids = torch.zeros(len(sides), width, dtype=torch.long, device=model.device)
    mask = torch.zeros_like(ids)
    for row, side in enumerate(sides):
        whole = torch.tensor(side.prompt_ids + side.completion_ids, device=model.device)
        ids[row, : len(whole)], mask[row, : len(whole)] = whole, 1
    inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    names = [name for side in sides for name in side.keyframes]
    if collator.vision and names:
        inputs |= {key: value.to(model.device) for key, value in collator.vision.inputs(names).items()}
        inputs["mm_token_type_ids"] = collator.vision.token_types(ids) * mask
    first = min(len(side.prompt_ids) for side in sides)
    logits = model(**inputs, use_cache=False, logits_to_keep=width - first + 1).logits
    found = []
    for row, side in enumerate(sides):
        start = len(side.prompt_ids) - first
        rows = logits[row, start : start + len(side.completion_ids)].float()
        answer = torch.tensor(side.completion_ids, device=model.device)
        found.append(rows.gather(1, answer[:, None])[:, 0] - rows.logsumexp(dim=1))
    return found


def _largest(first: list[torch.Tensor], second: list[torch.Tensor]) -> float:
    return max(float((one - other).abs().max()) for one, other in zip(first, second, strict=True))


def _rounding(values: list[torch.Tensor]) -> float:
    """One unit in the last place of the largest value: rows of equal length may agree to the last bit by chance."""
    return max(float(value.abs().max()) for value in values) * torch.finfo(torch.float32).eps
