"""TRL's DPOTrainer on pairs that were rendered beforehand, and its arguments from our settings."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import trl.trainer.utils
from datasets import Dataset
from torch.utils.data import Sampler
from trl import DPOConfig, DPOTrainer

from ad4edu_train.config import Dpo, TrainConfig, Trainer
from ad4edu_train.policy.chat import Rendered
from ad4edu_train.policy.log_probs import LogProb
from ad4edu_train.policy.moment_tree import TreeForward
from ad4edu_train.training.preflight import RenderedPair

# Where there is no Triton, TRL's head scores every position and throws the prompt's away: half the time of a CPU step.
# The values are the same (tests/training/test_trl_hooks.py); the kernel itself asks for Triton under a name of its own.
trl.trainer.utils._use_triton = lambda device: True


class MomentSampler(Sampler[int]):
    """Pairs of a moment one after the other, so that a batch shares prompts; the order follows from seed and epoch.

    Moments stay whole within batches of `batch_size` pairs where they fit; one that fits nowhere is split.
    """

    def __init__(self, pairs: list[RenderedPair], batch_size: int, seed: int) -> None:
        self.moments: dict[tuple[int, ...], list[int]] = {}
        for index, item in enumerate(pairs):
            self.moments.setdefault(item.first.prompt_ids, []).append(index)
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


class PairTrainer(DPOTrainer):
    """DPOTrainer on token ids as they were checked. In the layout `moment_tree` a batch runs each prompt once.

    `pairs` is what is trained; TRL's losses, metrics and checkpoints stay as they are.
    """

    def __init__(self, *, pairs: list[RenderedPair], layout: str, **arguments: Any) -> None:
        self.pairs = pairs
        self.layout = layout
        super().__init__(train_dataset=token_dataset(pairs), **arguments)

    def _get_train_sampler(self, *arguments: Any) -> Any:
        if self.layout == "stock":
            return super()._get_train_sampler(*arguments)
        return MomentSampler(self.pairs, self.args.per_device_train_batch_size, self.args.seed)

    def _compute_loss(self, model: Any, inputs: Any, return_outputs: bool) -> Any:
        if self.layout == "stock":
            return super()._compute_loss(model, inputs, return_outputs)
        tree = TreeForward(model, self._tokenizer.pad_token_id)
        loss = super()._compute_loss(tree, inputs, return_outputs)
        # TRL counts the tokens of its own layout; num_tokens is what was run.
        if model.training:
            self._total_train_tokens += tree.tokens - int(inputs["attention_mask"].sum())
            self._metrics["train"]["num_tokens"] = [self._total_train_tokens]
        return loss

    def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
        return dataset

    def _precompute_ref_logps(self, dataset: Any, *_: Any, **__: Any) -> Any:
        # `use_reference` fills them in: one run of the prompt for all ADs of a moment, instead of one for each side of a pair.
        return dataset

    def use_reference(self, reference: dict[Rendered, LogProb]) -> None:
        """Train against reference log-probs that were computed beforehand (needs `precompute_reference`)."""
        columns = {
            "ref_chosen_logps": [reference[item.first].total for item in self.pairs],
            "ref_rejected_logps": [reference[item.second].total for item in self.pairs],
        }
        self.train_dataset = token_dataset(self.pairs, **columns)


def token_dataset(pairs: list[RenderedPair], **columns: list[float]) -> Dataset:
    """The columns that TRL's collator reads: prompt_ids, chosen_ids, rejected_ids, and the reference's where given."""
    return Dataset.from_dict(
        {
            "prompt_ids": [list(item.first.prompt_ids) for item in pairs],
            "chosen_ids": [list(item.first.completion_ids) for item in pairs],
            "rejected_ids": [list(item.second.completion_ids) for item in pairs],
            **columns,
        }
    )


def trl_arguments(config: TrainConfig, folder: Path, use_cpu: bool) -> DPOConfig:
    """Every setting that TRL is given; what is not named here is TRL's default. Nothing is truncated and nothing is reported."""
    trainer = config.trainer
    return DPOConfig(
        output_dir=str(folder),
        use_cpu=use_cpu,
        max_length=None,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=True,
        logging_strategy="steps",
        logging_first_step=True,
        eval_strategy="no",
        **_dpo_arguments(config.dpo),
        **_trainer_arguments(trainer),
    )


def _dpo_arguments(dpo: Dpo) -> dict[str, Any]:
    optional = {"f_alpha_divergence_coef": dpo.f_alpha, "discopop_tau": dpo.discopop_tau}
    return {
        "loss_type": list(dpo.loss),
        "loss_weights": dpo.loss_weights,
        "beta": dpo.beta,
        "label_smoothing": dpo.label_smoothing,
        "ld_alpha": dpo.ld_alpha,
        "f_divergence_type": dpo.f_divergence,
        "use_weighting": dpo.weighting,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _trainer_arguments(trainer: Trainer) -> dict[str, Any]:
    return {
        "seed": trainer.seed,
        "data_seed": trainer.seed,
        "learning_rate": trainer.learning_rate,
        "lr_scheduler_type": trainer.scheduler,
        "warmup_steps": trainer.warmup_steps,
        "weight_decay": trainer.weight_decay,
        "max_grad_norm": trainer.max_grad_norm,
        "num_train_epochs": trainer.epochs,
        "max_steps": trainer.max_steps or -1,
        "per_device_train_batch_size": trainer.batch_size,
        "gradient_accumulation_steps": trainer.accumulation,
        "bf16": trainer.precision == "bf16",
        "gradient_checkpointing": trainer.gradient_checkpointing,
        "precompute_ref_log_probs": trainer.precompute_reference,
        "disable_dropout": trainer.disable_dropout,
        "logging_steps": trainer.log_every,
        "save_strategy": "steps",
        "save_steps": trainer.save_every,
        "save_total_limit": trainer.keep_checkpoints,
    }
