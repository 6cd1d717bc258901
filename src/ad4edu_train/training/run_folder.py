"""The run folder: its name follows from what is trained, so the same command finds its own folder again."""

import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ad4edu_train.config import TrainConfig
from ad4edu_train.errors import UserError
from ad4edu_train.policy.load import public_name
from ad4edu_train.training import disk
from ad4edu_train.training.processes import is_main, ranks
from ad4edu_train.writing import write_text

# The settings that decide what a run learns. Everything else (clock, tracker, logging, output root) leaves the name alone.
TRAINING_KEYS = {
    "model": ("path", "revision", "dtype", "attention", "quantization", "thinking"),
    "data": (
        "prompt_view",
        "max_pixels",
        "prefix_mismatch",
        "on_bad_row",
        "exclude_subjects",
        "validation_fraction",
        "validation_by",
        "max_train_pairs",
        "max_tokens",
        "too_long",
    ),
    "dpo": None,
    "lora": ("r", "alpha", "dropout", "targets", "vision_targets", "dtype"),
    "trainer": (
        "seed",
        "optimizer",
        "learning_rate",
        "scheduler",
        "warmup_steps",
        "weight_decay",
        "max_grad_norm",
        "epochs",
        "max_steps",
        "batch_size",
        "accumulation",
        "precision",
        "layout",
        "precompute_reference",
        "disable_dropout",
    ),
}
# Keys of config.yaml that may hold a path of this machine.
_PATH_KEYS = {
    "data": (
        "root", "train", "test_human", "candidates", "prompts", "human_val", "gold", "cursor_capability", "subjects", "moment_order",
        "keyframes", "sft",
    ),
    "model": ("path", "adapter"),
    "lora": ("start",),
    "trainer": ("output_root",),
}  # fmt: skip


def run_hash(config: TrainConfig, digests: dict[str, str], adapters_sha256: dict[str, str]) -> str:
    """Eight hex digits of the training-relevant settings, the data files' sha256, the starting adapters' and the number of
    processes, which multiplies the pairs of a step."""
    settings = {
        group: {key: value for key, value in getattr(config, group).model_dump().items() if keys is None or key in keys}
        for group, keys in TRAINING_KEYS.items()
    }
    settings["model"]["path"] = public_name(config.model.path)
    content = json.dumps([settings, sorted(digests.items()), sorted(adapters_sha256.items()), ranks()], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


class RunFolder:
    """Paths and records of one run. Only the main process writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.adapter = path / "adapter"
        self.reference = path / "ref"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for this run. Raises UserError while another process trains in it, and when its disk is full.

        The system frees it on any death.
        """
        if not is_main():
            yield
            return
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            file = (self.path / ".lock").open("a")
        except OSError as error:
            raise UserError(f"trainer.output_root: {self.path} cannot be written: {error.strerror}.") from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"{self.path} is being trained by another process: the same settings on the same data share one folder. "
                    "Wait for it, stop it, or change a setting (trainer.seed, experiment_name)."
                ) from None
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                    raise
                print(f"Warning: this file system has no locks, so a second run on {self.path.name} would not be noticed.")
            for leftover in self.path.glob(".*.partial"):  # of a killed process: no other one writes here
                leftover.unlink()
            try:
                yield
            except Exception as error:
                reason = disk.refusal(error)
                if reason is None:
                    raise
                raise UserError(
                    f"{self.path} cannot be written: {reason}. Complete checkpoints were kept. {disk.MAKE_ROOM}"
                ) from error

    def write_config(self, config: TrainConfig) -> None:
        """config.yaml: the settings without any folder of this machine."""
        if is_main():
            write_text(self.path / "config.yaml", yaml.safe_dump(public_settings(config), sort_keys=False))

    def mark_latest(self, experiment: str) -> None:
        """Point `<output_root>/<experiment>-latest` here, so that a script need not know the hash."""
        if is_main():
            partial = self.path.parent / f".{experiment}-latest.{os.getpid()}"
            partial.unlink(missing_ok=True)
            partial.symlink_to(self.path.name)
            partial.replace(self.path.parent / f"{experiment}-latest")

    def record(self) -> dict[str, Any]:
        """run.json, or an empty record for a new run."""
        path = self.path / "run.json"
        return json.loads(path.read_text()) if path.is_file() else {}

    def update(self, **facts: Any) -> None:
        """Add facts to run.json."""
        if is_main():
            record = self.record() | facts
            write_text(self.path / "run.json", json.dumps(record, indent=2, default=_plain) + "\n")

    def append_metrics(self, row: dict[str, Any]) -> None:
        if is_main():
            with (self.path / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Rows of metrics.jsonl or validation.jsonl; a last line that a killed process left torn is passed over."""
        path = self.path / name
        rows = []
        for line in path.read_text().split("\n") if path.is_file() else []:
            with contextlib.suppress(json.JSONDecodeError):
                rows.append(json.loads(line))
        return rows

    def take_back_to(self, step: int) -> None:
        """Leave out of the logs what a run that goes on from `step` will write again, and a torn last line."""
        for name in ("metrics.jsonl", "validation.jsonl"):
            path = self.path / name
            if is_main() and path.is_file():
                kept = [json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows(name) if row["step"] <= step]
                write_text(path, "".join(kept), path.stat().st_mode & 0o777)


def public_settings(config: TrainConfig) -> dict[str, Any]:
    """The settings without any folder of this machine: a local path keeps its last part, behind `local:`."""
    settings = config.model_dump()
    for group, keys in _PATH_KEYS.items():
        for key in keys:
            value = settings[group][key]
            if value and Path(value).expanduser().exists():
                settings[group][key] = f"local:{Path(value).name}"
    settings["trainer"]["output_root"] = f"local:{Path(config.trainer.output_root).name}"
    return settings


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} has no place in run.json")
