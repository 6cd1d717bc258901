"""What happens at the steps of a run: metrics written and shown, checkpoints marked, bad runs stopped, Ctrl-C heard."""

import math
import signal
import time
from collections.abc import Callable
from typing import Any

import torch
from tqdm.auto import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ad4edu_train.errors import UserError
from ad4edu_train.training.processes import is_main, ranks
from ad4edu_train.training.run_folder import RunFolder

# Reward units (beta x nats). Rounding of reference log-probs computed beforehand stays below it; any learning run passes it soon.
STALL_MARGIN = 1e-4
SHOWN = {
    "loss": "loss",
    "rewards/margins": "margin",
    "rewards/accuracies": "accuracy",
    "logps/chosen": "chosen log-prob",
    "grad_norm": "gradient",
    "learning_rate": "rate",
}


class TrainingStopped(UserError):
    """The run cannot go on usefully; its text names the cause."""


class Record(TrainerCallback):
    """metrics.jsonl and one line a logged step above the progress bar."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.bar: tqdm | None = None
        self.started = time.monotonic()

    def on_epoch_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.bar is not None:
            return
        self.bar = tqdm(total=state.max_steps, initial=state.global_step, unit="step", desc="training", disable=not is_main())
        self.started = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        # Figures are means since the last row, and a continued run knows of none before its checkpoint: a row ends at each.
        control.should_log |= control.should_save
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any) -> None:
        if "train_runtime" in logs:
            return  # transformers' closing figures, whose mean loss counts the steps since the last start alone
        row = {"step": state.global_step, "seconds": round(time.monotonic() - self.started, 1)}
        row |= {name: value for name, value in logs.items() if isinstance(value, int | float)}
        self.folder.append_metrics(row)
        if self.bar is not None and "loss" in row and is_main():
            values = "  ".join(f"{label} {row[name]:.4g}" for name, label in SHOWN.items() if name in row)
            self.bar.write(f"step {state.global_step}/{state.max_steps}  {values}")

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.bar is not None:
            self.bar.close()


class Watchdog(TrainerCallback):
    """Stops a run that cannot learn: NaN, weights that do not change, or a margin that stays at zero.

    Before the first update policy and reference are equal, so the margin is 0 and the loss ln 2 there: that is no fault.
    """

    def __init__(self, stall_steps: int) -> None:
        self.stall_steps = stall_steps
        self.moved = False

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any) -> None:
        for name in ("loss", "grad_norm"):
            if name in logs and not math.isfinite(logs[name]):
                raise TrainingStopped(
                    f"step {state.global_step}: {name} is {logs[name]}. The weights are lost from here on; the last complete checkpoint "
                    "is kept. Lower trainer.learning_rate, or use trainer.precision=fp32."
                )
        if abs(logs.get("rewards/margins", 0.0)) > STALL_MARGIN and logs.get("grad_norm", 1.0) > 0:
            self.moved = True
        if not self.moved and state.global_step >= self.stall_steps:
            raise TrainingStopped(
                f"After {state.global_step} steps the reward margin is still 0 (loss ln 2), so nothing is learned. Likely causes: "
                "trainer.learning_rate is 0 or too small for the adapter's dtype; no trainable tensor gets a gradient; the reference "
                "is the policy itself; every pair lost its completion tokens."
            )


class Interrupt(TrainerCallback):
    """Ctrl-C saves at the next step boundary and ends the run in order; a second one ends it at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self._before = signal.signal(signal.SIGINT, self._hear)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.asked = _one_of_all_asked(self.asked, args.device)
        if self.asked:
            control.should_log = control.should_save = control.should_training_stop = True

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _hear(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        tqdm.write("Ctrl-C: saving after this step (press again to stop at once without saving).")


def _one_of_all_asked(asked: bool, device: torch.device) -> bool:
    """A save is a meeting of all ranks, and a signal reaches them at different steps: what one heard, all follow."""
    if ranks() == 1:
        return asked
    flag = torch.tensor(float(asked), device=device)
    torch.distributed.all_reduce(flag)
    return bool(flag)


class WhenReady(TrainerCallback):
    """Calls `action()` once the model is placed (and sharded) as it will train, before the first step."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.action()


class Every(TrainerCallback):
    """Calls `action(step)` every so many steps."""

    def __init__(self, steps: int, action: Callable[[int], None]) -> None:
        self.steps = steps
        self.action = action

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step % self.steps == 0:
            self.action(state.global_step)
