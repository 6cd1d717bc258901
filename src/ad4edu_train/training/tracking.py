"""What a tracker is told about a run: figures and settings named here, and nothing else. A failing tracker stops no training."""

import math
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from tqdm.auto import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ad4edu_train.data.vocabulary import AXES, LABEL_SOURCES
from ad4edu_train.training.trackers import Tracker

FIGURES = {
    "loss", "grad_norm", "learning_rate", "epoch", "entropy", "mean_token_accuracy", "num_tokens", "aux_loss",
    "images", "rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins", "logps/chosen",
    "logps/rejected", "logits/chosen", "logits/rejected",
}  # fmt: skip
VALIDATION_GROUPS = {
    "all": "all",
    **{f"axis {name}": f"axis_{name}" for name in AXES},
    **{f"label source {name}": f"label_source_{name}" for name in LABEL_SOURCES},
}
VALIDATION_FIGURES = ("pairs", "right", "ties", "margin", "chosen_log_prob_change")
# Numbers, booleans and words of a fixed list; no setting that takes a free text, so no path, model or experiment name.
SETTINGS = (
    "model.dtype", "model.attention", "model.quantization", "model.quantization_storage", "model.thinking",
    "data.prompt_view", "data.prefix_mismatch", "data.on_bad_row", "data.validation_fraction", "data.validation_by",
    "data.max_train_pairs", "data.max_tokens", "data.max_pixels", "data.too_long", "dpo.loss", "dpo.loss_weights", "dpo.beta",
    "dpo.label_smoothing", "dpo.ld_alpha", "dpo.f_divergence", "dpo.f_alpha", "dpo.discopop_tau", "dpo.weighting",
    "dpo.reference", "lora.r", "lora.alpha", "lora.dropout", "lora.dtype", "trainer.seed", "trainer.learning_rate",
    "trainer.scheduler", "trainer.optimizer", "trainer.warmup_steps", "trainer.weight_decay", "trainer.max_grad_norm",
    "trainer.epochs", "trainer.max_steps", "trainer.batch_size", "trainer.accumulation", "trainer.precision",
    "trainer.gradient_checkpointing", "trainer.layout", "trainer.precompute_reference", "trainer.disable_dropout",
    "distributed.kind", "distributed.offload", "distributed.zero_stage",
)  # fmt: skip


def told_settings(settings: Mapping[str, Any], *, synthetic: bool) -> dict[str, Any]:
    """The settings that a tracker is told, by dotted key, from the dump of a TrainConfig; and whether the data are synthetic."""
    told: dict[str, Any] = {"synthetic_data": synthetic}
    for key in SETTINGS:
        group, _, name = key.partition(".")
        told[key] = settings[group][name]
    return told


class Tracking(TrainerCallback):
    """Sends the figures of the steps to a tracker, from rank 0 alone.

    `open_tracker(step)` is called with the first figures, so that a run that fails before has no track; None tracks nothing.
    As a context it closes the track, with exit code 1 where an exception passes through.
    """

    def __init__(self, open_tracker: Callable[[int], Tracker] | None) -> None:
        self._open_tracker = open_tracker
        self._tracker: Tracker | None = None
        self._step_began = 0.0
        self._step_seconds: list[float] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            self._guarded(lambda: tracker.close(0 if error is None else 1))

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self._step_began = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self._step_seconds.append(time.monotonic() - self._step_began)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any) -> None:
        values = {name: value for name, value in (logs or {}).items() if name in FIGURES}
        if self._step_seconds:
            values["step_seconds"] = sum(self._step_seconds) / len(self._step_seconds)
            self._step_seconds.clear()
        self._send(state, values)

    def validated(self, state: TrainerState, summaries: Mapping[str, Mapping[str, float]]) -> None:
        """Figures of a validation, as `validation.summarise` groups them. Groups that the card does not name are left out."""
        values = {
            f"validation/{VALIDATION_GROUPS[group]}/{figure}": summary[figure]
            for group, summary in summaries.items()
            if group in VALIDATION_GROUPS
            for figure in VALIDATION_FIGURES
        }
        self._send(state, values)

    def _send(self, state: TrainerState, values: Mapping[str, Any]) -> None:
        figures = {name: float(value) for name, value in values.items() if _is_figure(value)}
        if not figures or not state.is_world_process_zero:
            return
        if self._tracker is None and self._open_tracker is not None:
            open_tracker, self._open_tracker = self._open_tracker, None
            self._guarded(lambda: self._keep(open_tracker(state.global_step)))
        if self._tracker is not None:
            tracker = self._tracker
            self._guarded(lambda: tracker.log(state.global_step, figures))

    def _keep(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def _guarded(self, action: Callable[[], None]) -> None:
        """Run `action`; after its first failure, whatever the tracker's libraries raise, the tracker is left alone."""
        try:
            action()
        except Exception as error:
            self._tracker = None
            tqdm.write(
                f"warning: the tracker failed and is left out from here on ({type(error).__name__}: {error}). Training goes on; every "
                "figure stands in metrics.jsonl.",
                file=sys.stderr,
            )


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
