"""Rendered pairs in batches: which come together, and the tensors that TRL's loss reads."""

from collections.abc import Iterator
from random import Random
from typing import Any

import torch
from datasets import Dataset
from torch.utils.data import Sampler
from trl.trainer.dpo_trainer import DataCollatorForPreference

from ad4edu_train.policy.chat import Prompt, Rendered
from ad4edu_train.policy.log_probs import LogProb
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


class PairCollator:
    """Rows {"index": i} of `rows_of` -> a batch of `pairs` in TRL's layout: chosen sides, then rejected sides, right-padded.

    Keyframes are read here, each once a batch. `reference`, once set, adds reference log-probs computed beforehand.
    """

    def __init__(self, pairs: list[RenderedPair], pad_id: int, vision: Vision | None = None) -> None:
        self.pairs = pairs
        self.vision = vision
        self.reference: dict[Rendered, LogProb] | None = None
        self._layout = DataCollatorForPreference(pad_token_id=pad_id)

    def __call__(self, rows: list[dict[str, int]]) -> dict[str, torch.Tensor]:
        items = [self.pairs[row["index"]] for row in rows]
        batch = self._layout([self._columns(item) for item in items])
        names = [name for item in items for name in item.first.keyframes]
        if names and self.vision:
            batch |= self.vision.inputs(names + names)
            batch["mm_token_type_ids"] = self.vision.token_types(batch["input_ids"])
        return batch

    def _columns(self, item: RenderedPair) -> dict[str, Any]:
        columns: dict[str, Any] = {
            "prompt_ids": list(item.first.prompt_ids),
            "chosen_ids": list(item.first.completion_ids),
            "rejected_ids": list(item.second.completion_ids),
        }
        if self.reference is not None:
            columns["ref_chosen_logps"] = self.reference[item.first].total
            columns["ref_rejected_logps"] = self.reference[item.second].total
        return columns


def rows_of(pairs: list[RenderedPair]) -> Dataset:
    """The data set that TRL's trainer draws from: the numbers of the pairs. Their tokens stay where they were rendered."""
    return Dataset.from_dict({"index": list(range(len(pairs)))})
