"""TRL's DPOTrainer on pairs that were rendered beforehand, and its arguments from our settings."""

from pathlib import Path
from typing import Any

import torch
import trl.trainer.utils
from trl import DPOConfig, DPOTrainer

from ad4edu_train.config import Dpo, LabelNoise, TrainConfig, Trainer
from ad4edu_train.policy.moment_tree import TreeForward
from ad4edu_train.policy.vision import Vision
from ad4edu_train.training import reference
from ad4edu_train.training.batches import MomentSampler, PairCollator, rows_of
from ad4edu_train.training.checkpoints import Checkpoints
from ad4edu_train.training.losses import noise_term
from ad4edu_train.training.preflight import RenderedPair
from ad4edu_train.training.processes import training_arguments

OPTIMIZERS = {"adamw": "adamw_torch", "adamw_8bit": "adamw_bnb_8bit", "paged_adamw_8bit": "paged_adamw_8bit"}
COUNTED = "counted"  # where a checkpoint's state holds the figures that are counted since step 0

# Where there is no Triton, TRL's head scores every position and throws the prompt's away: half the time of a CPU step.
# The values are the same (tests/training/test_trl_hooks.py); the kernel itself asks for Triton under a name of its own.
trl.trainer.utils._use_triton = lambda device: True


class PairTrainer(DPOTrainer):
    """DPOTrainer on token ids as they were checked. In the layout `moment_tree` a batch runs each prompt once.

    `pairs` is what is trained; TRL's losses and metrics stay as they are. The figure `images` counts the keyframes given since the
    last one.
    """

    def __init__(
        self,
        *,
        pairs: list[RenderedPair],
        layout: str,
        checkpoints: Checkpoints,
        vision: Vision | None = None,
        label_noise: LabelNoise | None = None,
        **arguments: Any,
    ) -> None:
        self.pairs = pairs
        self.layout = layout
        self.checkpoints = checkpoints
        self.label_noise = label_noise if label_noise and label_noise.method != "none" else None
        self.collator = PairCollator(
            pairs,
            arguments["processing_class"].pad_token_id,
            vision,
            tree=layout == "moment_tree",
            ld_alpha=arguments["args"].ld_alpha,
            noise=self.label_noise.model_dump(exclude={"method"}) if self.label_noise else None,
        )
        self._images = 0
        super().__init__(train_dataset=rows_of(pairs), data_collator=self.collator, **arguments)

    def _get_train_sampler(self, *arguments: Any) -> Any:
        if self.layout == "stock":
            return super()._get_train_sampler(*arguments)
        return MomentSampler(self.pairs, self.args.per_device_train_batch_size, self.args.seed)

    def _compute_loss(self, model: Any, inputs: Any, return_outputs: bool) -> Any:
        if "image_grid_thw" in inputs and model.training:
            self._images += len(inputs["image_grid_thw"]) // (1 if self.layout == "moment_tree" else 2)
        inputs = dict(inputs)
        noise = inputs.pop("noise", None)
        tree = TreeForward(model, self.model) if self.layout == "moment_tree" else None
        captured = Captured(tree or model)
        loss = super()._compute_loss(captured if noise is not None or tree else model, inputs, return_outputs)
        # TRL counts the tokens of its own layout; num_tokens is what was run.
        if tree and model.training:
            self._total_train_tokens += tree.tokens - int(inputs["attention_mask"].sum())
            self._metrics["train"]["num_tokens"] = [self._total_train_tokens]
        if noise is not None and self.label_noise:
            loss = loss + noise_term(self.label_noise.method, noise.to(loss.device), self._margins(captured.log_probs, inputs))
        return loss

    def _margins(self, log_probs: torch.Tensor, inputs: Any) -> torch.Tensor:
        """Reward margins (pairs,) from the log-probs (2 x pairs, tokens) that the loss has just used."""
        chosen, rejected = log_probs.sum(dim=1).chunk(2)
        return self.beta * ((chosen - inputs["ref_chosen_logps"]) - (rejected - inputs["ref_rejected_logps"]))

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if self.collator.vision:
            count = torch.tensor(self._images, device=self.accelerator.device)
            logs["images"] = int(self.accelerator.reduce(count, "sum"))
            self._images = 0
        super().log(logs, start_time)

    def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
        return dataset

    def _precompute_ref_logps(self, dataset: Any, *_: Any, **__: Any) -> Any:
        # The collator adds them: one run of the prompt for all ADs of a moment, instead of one for each side of a pair.
        return dataset

    def _get_output_dir(self, trial: Any) -> str:
        return str(self.checkpoints.partial)

    def _init_training_state(self, *arguments: Any, **named: Any) -> Any:
        begun = super()._init_training_state(*arguments, **named)
        # A checkpoint's state brings the intervals of its own settings along; those of now hold. What is counted goes on.
        self.state.compute_steps(self.args, self.state.max_steps)
        counted = self._carried().get(COUNTED, {"tokens": 0, "images": 0})
        self._total_train_tokens, self._images = counted["tokens"], counted["images"]
        return begun

    def _carried(self) -> dict[str, Any]:
        """What a checkpoint's trainer_state.json carries beyond transformers' own fields: JSON by name."""
        return self.state.stateful_callbacks  # type: ignore[return-value]  # a list only while it is made

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        # Where the reference lies beside the trained adapter, transformers loads the reference alone.
        if (Path(resume_from_checkpoint) / reference.ADAPTER).is_dir() and not self.is_fsdp_enabled:
            policy: Any = self.model
            policy.load_adapter(resume_from_checkpoint, policy.active_adapter, is_trainable=True)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        # Past TRL's own method, which writes a model card beside the checkpoints.
        save = super(DPOTrainer, self)._save_checkpoint
        # Unused, but transformers would warn at every restart that its default is not the argument.
        self.state.eval_steps = self.args.eval_steps  # type: ignore[assignment]
        self._carried()[COUNTED] = {"tokens": self._total_train_tokens, "images": self._images}
        self.checkpoints.save(
            self.state.global_step,
            lambda: save(model, trial),
            main=self.args.should_save,
            wait=self.accelerator.wait_for_everyone,
        )


class Captured:
    """A model whose last per-token log-probs (2 x pairs, tokens) stay at hand."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.log_probs = torch.empty(0)

    def __call__(self, **inputs: Any) -> Any:
        outputs = self.model(**inputs)
        self.log_probs = outputs.log_probs
        return outputs


def trl_arguments(config: TrainConfig, folder: Path, *, steps: int | None, layers: list[str], use_cpu: bool) -> DPOConfig:
    """Every setting that TRL is given; what is not named here is TRL's default. Nothing is truncated and nothing is reported.

    `steps` stands in place of epochs where given; `layers` are the layer classes to shard.
    """
    arguments: dict[str, Any] = {
        "output_dir": str(folder),
        "use_cpu": use_cpu,
        "max_length": None,
        "max_steps": steps or -1,
        "report_to": "none",
        "disable_tqdm": True,
        "remove_unused_columns": False,
        "logging_strategy": "steps",
        "logging_first_step": True,
        "eval_strategy": "no",
    }
    return DPOConfig(
        **(
            arguments
            | _dpo_arguments(config.dpo)
            | _trainer_arguments(config.trainer)
            | training_arguments(config, layers, use_cpu)
        )
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
        "optim": OPTIMIZERS[trainer.optimizer],
        "learning_rate": trainer.learning_rate,
        "lr_scheduler_type": trainer.scheduler,
        "warmup_steps": trainer.warmup_steps,
        "weight_decay": trainer.weight_decay,
        "max_grad_norm": trainer.max_grad_norm,
        "num_train_epochs": trainer.epochs,
        "per_device_train_batch_size": trainer.batch_size,
        "gradient_accumulation_steps": trainer.accumulation,
        "bf16": trainer.precision == "bf16",
        "gradient_checkpointing": trainer.gradient_checkpointing,
        "precompute_ref_log_probs": trainer.precompute_reference,
        "disable_dropout": trainer.disable_dropout,
        "logging_steps": trainer.log_every,
        "save_strategy": "steps",
        "save_steps": trainer.save_every,
        "dataloader_num_workers": trainer.num_workers,
    }
