"""The parts of a run that need torch: model, adapter, TRL's trainer, validation, saving."""

import contextlib
import math
import shutil
from functools import partial
from typing import Any

import torch
from transformers import TrainerCallback
from transformers.utils import logging

from ad4edu_train.config import TrainConfig
from ad4edu_train.data.keyframes import Keyframes
from ad4edu_train.data.rights import terms
from ad4edu_train.errors import UserError
from ad4edu_train.policy import moment_tree
from ad4edu_train.policy.chat import Chat
from ad4edu_train.policy.load import load_base, load_tokenizer
from ad4edu_train.policy.vision import load_vision
from ad4edu_train.training import processes, reference
from ad4edu_train.training.callbacks import Every, Interrupt, Record, Watchdog, WhenReady
from ad4edu_train.training.checkpoints import Checkpoints, step_of
from ad4edu_train.training.lora import check_parts, lay_lora, lora_config, parts_of, trainable_by_part
from ad4edu_train.training.preflight import Preflight
from ad4edu_train.training.run_folder import RunFolder
from ad4edu_train.training.tracking import Tracking
from ad4edu_train.training.trainer import PairTrainer, trl_arguments
from ad4edu_train.training.watch import Watch

CARD_NOTE = "LoRA adapter trained by ad4edu-train with direct preference optimisation.\n"


class Session:
    """One run's model and trainer. `load` before `run`; rendering needs the tokenizer alone."""

    def __init__(self, config: TrainConfig, keyframes: Keyframes | None) -> None:
        logging.disable_progress_bar()
        self.config = config
        if config.trainer.threads:
            torch.set_num_threads(config.trainer.threads)
        self.use_cpu = not torch.cuda.is_available()
        self.tokenizer = load_tokenizer(config.model)
        self.vision = load_vision(config.model, keyframes, config.data.max_pixels) if keyframes else None
        self.chat = Chat(
            self.tokenizer, thinking=config.model.thinking, prefix_mismatch=config.data.prefix_mismatch, vision=self.vision
        )

    def load(self) -> None:
        """Load the base weights and find the modules to adapt; `parts` counts trainable parameters by model part."""
        self.base = load_base(self.config.model)
        self.lora = lora_config(self.base, self.config.lora)
        self.parts = parts_of(self.base, self.lora)
        check_parts(self.parts, self.config.lora)
        if self.config.trainer.layout == "moment_tree":
            moment_tree.require(self.base)

    def steps(self, pairs: int) -> int:
        """Optimiser steps of the whole run."""
        trainer = self.config.trainer
        batches = math.ceil(pairs / (trainer.batch_size * processes.ranks()))
        return trainer.max_steps or math.ceil(trainer.epochs * math.ceil(batches / trainer.accumulation))

    def weight_bytes(self) -> int:
        return sum(parameter.numel() * parameter.element_size() for parameter in self.base.parameters())

    def run(self, folder: RunFolder, training: Preflight, validation: Preflight, steps: int | None, tracking: Tracking) -> None:
        """Train to the end, to Ctrl-C or to a stop with a named cause; what happened stands in run.json."""
        interrupt = Interrupt()
        checkpoints = Checkpoints(folder.checkpoints, self.config.trainer.keep_checkpoints)
        callbacks = [Record(folder), tracking, Watchdog(self.config.trainer.stall_steps), interrupt]
        trainer = self._trainer(folder, training, callbacks, checkpoints, steps)
        trainer.accelerator.wait_for_everyone()
        resumed = checkpoints.newest()
        watch = Watch(self.config, self.vision, trainer, folder, validation.pairs, tracking, resumed=resumed is not None)
        trainer.add_callback(WhenReady(watch.begin))
        if self.config.trainer.validate_every and validation.pairs:
            trainer.add_callback(Every(self.config.trainer.validate_every, watch.validate))
        if resumed:
            print(f"Continuing from {resumed.name}.")
        if processes.is_main():
            checkpoints.tidy()
        folder.take_back_to(step_of(resumed) if resumed else -1)
        before = _adapter_tensors(trainer.model)
        try:
            trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
        except UserError as error:
            with contextlib.suppress(OSError):  # on a full disk the record stays as it was, and the error says why
                folder.update(status="failed", reason=str(error))
            raise
        step = trainer.state.global_step
        if interrupt.asked and step < trainer.state.max_steps:
            folder.update(status="interrupted", step=step)
            print(f"Stopped at step {step}, saved. The same command continues from there.")
            return
        if not resumed and not _changed(before, _adapter_tensors(trainer.model)):
            folder.update(status="failed", reason="no adapter weight changed")
            raise UserError(
                "training ended, but no weight of the adapter changed. Is trainer.learning_rate large enough for lora.dtype?"
            )
        watch.end(step)
        self._save_adapter(trainer, folder)
        images = sum(row.get("images", 0) for row in folder.rows("metrics.jsonl"))
        folder.update(status="finished", step=step, images_seen=images)

    def _trainer(
        self,
        folder: RunFolder,
        training: Preflight,
        callbacks: list[TrainerCallback],
        checkpoints: Checkpoints,
        steps: int | None,
    ) -> PairTrainer:
        from transformers import PrinterCallback, ProgressCallback

        config = self.config
        start = lay_lora(self.base, self.lora, config.lora)
        arguments = trl_arguments(
            config,
            folder.checkpoints,
            steps=steps or config.trainer.max_steps,
            layers=list(self.base._no_split_modules or []),
            use_cpu=self.use_cpu,
        )
        trainer = PairTrainer(
            model=start or self.base,
            args=arguments,
            pairs=training.pairs,
            layout=config.trainer.layout,
            checkpoints=checkpoints,
            vision=self.vision,
            label_noise=config.dpo.label_noise,
            processing_class=self.tokenizer,
            peft_config=None if start else self.lora,
            callbacks=callbacks,
        )
        assert trainer.model is not None
        processes.check_live(config.distributed.kind, trainer.accelerator)
        for callback in (PrinterCallback, ProgressCallback):
            trainer.remove_callback(callback)
        reference.settle(trainer.model, config.dpo.reference)
        # PEFT would ask the hub for the base model's config to see whether its vocabulary grew; it did not.
        trainer.model.save_pretrained = partial(trainer.model.save_pretrained, save_embedding_layers=False)  # type: ignore
        # TRL casts adapters on 4-bit weights to bfloat16, which loses small updates.
        dtype = getattr(torch, config.lora.dtype)
        for name, parameter in trainer.model.named_parameters():
            if "lora_" in name:
                parameter.data = parameter.data.to(dtype)
        self.parts = trainable_by_part(trainer.model)
        check_parts(self.parts, config.lora)
        return trainer

    def _save_adapter(self, trainer: PairTrainer, folder: RunFolder) -> None:
        """adapter/, and ref/ where the reference is an adapter: both whole or absent."""
        partial = folder.path / ".adapter"
        trainer.save_model(str(partial), _internal_call=True)
        if not processes.is_main():
            return
        for leftover in (*partial.rglob("training_args.bin"), *partial.rglob("README.md")):
            leftover.unlink()
        note = terms(synthetic=bool(folder.record().get("synthetic_data")))
        (partial / "README.md").write_text(f"{CARD_NOTE}{note}\n")
        for written, final in ((partial / reference.ADAPTER, folder.reference), (partial, folder.adapter)):
            if written.is_dir():
                shutil.rmtree(final, ignore_errors=True)
                written.rename(final)


def _adapter_tensors(model: Any) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}


def _changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> bool:
    return any(not torch.equal(tensor, after[name]) for name, tensor in before.items())
