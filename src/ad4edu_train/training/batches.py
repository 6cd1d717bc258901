"""Rendered pairs in batches: which come together, and the tensors that TRL's loss reads."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from datasets import Dataset
from torch.utils.data import Sampler
from trl.trainer.dpo_trainer import DataCollatorForPreference

from ad4edu_train.policy.chat import Prompt, Rendered
from ad4edu_train.policy.log_probs import LogProb
from ad4edu_train.policy.tree_layout import Tree, tokens_of
from ad4edu_train.policy.vision import Vision
from ad4edu_train.training.preflight import RenderedPair


class MomentSampler(Sampler[int]):
    """Pairs of a moment one after the other, so that a batch shares prompts; the order follows from seed and epoch.

    Moments stay whole within batches of `batch_size` pairs where they fit; one that fits nowhere is split.
    """

    def __init__(self, pairs: list[RenderedPair], batch_size: int, seed: int) -> None:
        self.moments: dict[Prompt, list[int]] = {}
        for index, item in enumerate(pairs):
            self.moments.setdefault(item.first.prompt, []).append(index)
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return sum(map(len, self.moments.values()))

    def __iter__(self) -> Iterator[int]:
        waiting = list(self.moments.values())
        Random(f"{self.seed} {self.epoch}").shuffle(waiting)
        room = self.batch_size
        while waiting:
            fitting = next((number for number, moment in enumerate(waiting) if len(moment) <= room), 0)
            moment = waiting.pop(fitting)
            taken, left = moment[:room], moment[room:]
            if left:
                waiting.insert(0, left)
            yield from taken
            room = room - len(taken) or self.batch_size


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """What the micro-batches of a run will be: tokens of the largest one, and moments that are split because they fit in none."""

    largest: int
    split_moments: int


def plan_batches(pairs: list[RenderedPair], *, layout: str, batch_size: int, seed: int, epochs: float) -> BatchPlan:
    """Lay every epoch's batches without a model. For stock rows the plan is the bound of a batch of the longest pairs."""
    if layout == "stock":
        longest = sorted((item.longest for item in pairs), reverse=True)
        return BatchPlan(largest=2 * min(batch_size, len(pairs)) * longest[0], split_moments=0)
    sampler = MomentSampler(pairs, batch_size, seed)
    largest = split = 0
    for epoch in range(math.ceil(epochs)):
        sampler.set_epoch(epoch)
        order = [pairs[index] for index in sampler]
        batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
        largest = max(largest, *(_tree_tokens(batch) for batch in batches))
        found = Counter(prompt for batch in batches for prompt in {item.first.prompt for item in batch})
        split = max(split, sum(count > 1 for count in found.values()))
    return BatchPlan(largest=largest, split_moments=split)


def _tree_tokens(batch: list[RenderedPair]) -> int:
    sides: dict[Prompt, dict[tuple[int, ...], None]] = {}
    for item in batch:
        for side in (item.first, item.second):
            sides.setdefault(side.prompt, {})[side.completion_ids] = None
    return sum(tokens_of(Tree(prompt.ids, tuple(found))) for prompt, found in sides.items())


class PairCollator:
    """Rows {"index": i} of `rows_of` -> a batch of `pairs` in TRL's layout: chosen sides, then rejected sides, right-padded.

    Keyframes are read here, each once a batch. `reference`, once set, adds reference log-probs computed beforehand, weighted beyond
    the shorter side's length by `ld_alpha` as TRL weights the policy's. For the moment tree `moments` names the prompt of each row,
    and the images of a moment come once. `noise` is the share of flipped labels by label source.
    """

    def __init__(
        self,
        pairs: list[RenderedPair],
        pad_id: int,
        vision: Vision | None = None,
        *,
        tree: bool = False,
        ld_alpha: float | None = None,
        noise: Mapping[str, float] | None = None,
    ) -> None:
        self.pairs = pairs
        self.vision = vision
        self.tree = tree
        self.noise = noise
        self.ld_alpha = 1.0 if ld_alpha is None else ld_alpha
        self.reference: dict[Rendered, LogProb] | None = None
        self._layout = DataCollatorForPreference(pad_token_id=pad_id)

    def __call__(self, rows: list[dict[str, int]]) -> dict[str, torch.Tensor]:
        items = [self.pairs[row["index"]] for row in rows]
        batch = self._layout([self._columns(item) for item in items])
        prompts = [item.first.prompt for item in items]
        distinct = list(dict.fromkeys(prompts))
        if self.noise is not None:
            batch["noise"] = torch.tensor([self.noise[str(item.pair.label_source)] for item in items])
        if self.tree:
            batch["moments"] = torch.tensor([distinct.index(prompt) for prompt in prompts] * 2)
        if self.vision and distinct[0].keyframes:
            shown = distinct if self.tree else prompts * 2
            batch |= self.vision.inputs([name for prompt in shown for name in prompt.keyframes])
            batch["mm_token_type_ids"] = self.vision.token_types(batch["input_ids"])
        return batch

    def _columns(self, item: RenderedPair) -> dict[str, Any]:
        columns: dict[str, Any] = {
            "prompt_ids": list(item.first.prompt_ids),
            "chosen_ids": list(item.first.completion_ids),
            "rejected_ids": list(item.second.completion_ids),
        }
        if self.reference is not None:
            chosen, rejected = self.reference[item.first], self.reference[item.second]
            shared = min(chosen.tokens, rejected.tokens)
            for name, side in (("ref_chosen_logps", chosen), ("ref_rejected_logps", rejected)):
                columns[name] = math.fsum(side.values[:shared]) + self.ld_alpha * math.fsum(side.values[shared:])
        return columns


def rows_of(pairs: list[RenderedPair]) -> Dataset:
    """The data set that TRL's trainer draws from: the numbers of the pairs. Their tokens stay where they were rendered."""
    return Dataset.from_dict({"index": list(range(len(pairs)))})
