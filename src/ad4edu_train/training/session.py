"""The parts of a run that need torch: model, adapter, TRL's trainer, validation, saving."""

import math
from pathlib import Path
from typing import Any

import torch
from tqdm.auto import tqdm
from transformers.utils import logging

from ad4edu_train.config import TrainConfig
from ad4edu_train.errors import UserError
from ad4edu_train.policy.chat import Chat, Rendered
from ad4edu_train.policy.load import load_base, load_tokenizer, public_name
from ad4edu_train.policy.log_probs import LogProb
from ad4edu_train.policy.moment_tree import refuse_inexact
from ad4edu_train.training import validation as per_pair
from ad4edu_train.training.callbacks import CheckpointMark, Every, Interrupt, Record, Watchdog
from ad4edu_train.training.lora import check_parts, lora_config, trainable_by_part
from ad4edu_train.training.preflight import Preflight
from ad4edu_train.training.run_folder import RunFolder
from ad4edu_train.training.trainer import PairTrainer, trl_arguments
from ad4edu_train.writing import write_private_rows

CARD_NOTE = (
    "LoRA adapter trained by ad4edu-train with direct preference optimisation.\n"
    "{data}\nThe data set's card forbids redistribution of the lecture material and what derives from it: keep this adapter private "
    "unless you hold the rights.\n"
)


class Session:
    """One run's model and trainer. `load` before `run`; rendering needs the tokenizer alone."""

    def __init__(self, config: TrainConfig) -> None:
        logging.disable_progress_bar()
        self.config = config
        if config.trainer.threads:
            torch.set_num_threads(config.trainer.threads)
        self.use_cpu = not torch.cuda.is_available()
        self.tokenizer = load_tokenizer(config.model)
        self.chat = Chat(self.tokenizer, thinking=config.model.thinking, prefix_mismatch=config.data.prefix_mismatch)

    def load(self) -> None:
        """Load the base weights and find the modules to adapt; `parts` counts trainable parameters by model part."""
        self.base = load_base(self.config.model)
        self.lora = lora_config(self.base, self.config.lora)
        self.parts = self._count_parts()
        if self.config.trainer.layout == "moment_tree":
            refuse_inexact(self.base.config)

    def reference_in_words(self) -> str:
        name = public_name(self.config.model.path)
        if self.config.model.adapter:
            return f"{name} with the SFT adapter {Path(self.config.model.adapter).name} merged into it"
        return f"the base model {name}, unchanged (the policy with its new adapter switched off)"

    def steps(self, pairs: int) -> int:
        """Optimiser steps of the whole run."""
        trainer = self.config.trainer
        batches = math.ceil(pairs / trainer.batch_size)
        return trainer.max_steps or math.ceil(trainer.epochs * math.ceil(batches / trainer.accumulation))

    def weight_bytes(self) -> int:
        return sum(parameter.numel() * parameter.element_size() for parameter in self.base.parameters())

    def run(self, folder: RunFolder, training: Preflight, validation: Preflight) -> None:
        """Train to the end, to Ctrl-C or to a stop with a named cause; what happened stands in run.json."""
        interrupt = Interrupt()
        trainer = self._trainer(folder, training, interrupt)
        model = trainer.model
        before = _adapter_tensors(model)
        reference = self._reference(trainer, training, validation)
        rows: list[per_pair.ValidationRow] = []

        def validate(step: int) -> None:
            found = per_pair.validate(model, validation.pairs, reference, beta=self.config.dpo.beta, step=step)
            rows.extend(found)
            write_private_rows(folder.path / "validation.jsonl", per_pair.as_rows(rows))
            folder.append_metrics({"step": step, "validation": {k: vars(v) for k, v in per_pair.summarise(found).items()}})

        if self.config.trainer.validate_every and validation.pairs:
            trainer.add_callback(Every(self.config.trainer.validate_every, validate))
        resumed = folder.newest_checkpoint()
        if resumed:
            print(f"Continuing from {resumed.name}.")
        elif validation.pairs:
            validate(0)
            if any(row.margin != 0 for row in rows):
                raise UserError(
                    "before the first step policy and reference differ, so the reference is not what run.json says it is."
                )
        try:
            trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
        except UserError as error:
            folder.update(status="failed", reason=str(error))
            raise
        if interrupt.asked and trainer.state.global_step < trainer.state.max_steps:
            folder.update(status="interrupted", step=trainer.state.global_step)
            print(f"Stopped at step {trainer.state.global_step}, saved. The same command continues from there.")
            return
        if not resumed and not _changed(before, _adapter_tensors(model)):
            folder.update(status="failed", reason="no adapter weight changed")
            raise UserError(
                "training ended, but no weight of the adapter changed. Is trainer.learning_rate large enough for lora.dtype?"
            )
        if validation.pairs and (not rows or rows[-1].step != trainer.state.global_step):
            validate(trainer.state.global_step)
        self._save_adapter(model, folder)
        folder.update(status="finished", step=trainer.state.global_step)

    def _trainer(self, folder: RunFolder, training: Preflight, interrupt: Interrupt) -> PairTrainer:
        from transformers import PrinterCallback, ProgressCallback

        trainer = PairTrainer(
            model=self.base,
            args=trl_arguments(self.config, folder.checkpoints, self.use_cpu),
            pairs=training.pairs,
            layout=self.config.trainer.layout,
            processing_class=self.tokenizer,
            peft_config=self.lora,
            callbacks=[
                Record(folder),
                Watchdog(self.config.trainer.stall_steps),
                CheckpointMark(folder.checkpoints),
                interrupt,
            ],
        )
        assert trainer.model is not None
        for callback in (PrinterCallback, ProgressCallback):
            trainer.remove_callback(callback)
        dtype = getattr(torch, self.config.lora.dtype)
        for name, parameter in trainer.model.named_parameters():
            if "lora_" in name:
                parameter.data = parameter.data.to(dtype)
        self.parts = trainable_by_part(trainer.model)
        check_parts(self.parts)
        return trainer

    def _reference(self, trainer: PairTrainer, training: Preflight, validation: Preflight) -> dict[Rendered, LogProb]:
        """Reference log-probs of the validation pairs, and of the training pairs where they are computed beforehand."""
        beforehand = training.pairs if self.config.trainer.precompute_reference else []
        pairs = [*beforehand, *validation.pairs]
        with tqdm(total=len({item.first.prompt_ids for item in pairs}), unit="prompt", desc="reference") as bar:
            scores = per_pair.reference_scores(trainer.model, pairs, bar.update)
        if beforehand:
            trainer.use_reference(scores)
        return scores

    def _count_parts(self) -> dict[str, int]:
        """Trainable parameters as PEFT would make them, counted on a model without storage."""
        from accelerate import init_empty_weights
        from peft import get_peft_model

        with init_empty_weights():
            skeleton = type(self.base)(self.base.config)
            parts = trainable_by_part(get_peft_model(skeleton, self.lora))
        check_parts(parts)
        return parts

    def _save_adapter(self, model: Any, folder: RunFolder) -> None:
        model.save_pretrained(folder.adapter)
        self.tokenizer.save_pretrained(folder.adapter)
        data = "Trained on SYNTHETIC data." if folder.record().get("synthetic_data") else "Trained on AD4Edu preference pairs."
        (folder.adapter / "README.md").write_text(CARD_NOTE.format(data=data))


def _adapter_tensors(model: Any) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}


def _changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> bool:
    return any(not torch.equal(tensor, after[name]) for name, tensor in before.items())
