"""The run folder: its name follows from what is trained, so the same command finds its own folder again."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import yaml

from ad4edu_train.config import TrainConfig
from ad4edu_train.errors import UserError
from ad4edu_train.policy.load import public_name
from ad4edu_train.writing import write_text

# The settings that decide what a run learns. Everything else (clock, tracker, logging, output root) leaves the name alone.
TRAINING_KEYS = {
    "model": ("path", "revision", "dtype", "attention", "quantization", "thinking"),
    "data": (
        "prompt_view",
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
    "lora": None,
    "trainer": (
        "seed",
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
COMPLETE = "COMPLETE"
# Keys of config.yaml that may hold a path of this machine.
_PATH_KEYS = {"data": ("root", "train", "test_human", "candidates", "prompts", "human_val", "gold", "cursor_capability", "subjects",
                       "moment_order", "keyframes", "sft"), "model": ("path", "adapter"), "trainer": ("output_root",)}  # fmt: skip


def run_hash(config: TrainConfig, digests: dict[str, str], adapter_sha256: str | None) -> str:
    """Eight hex digits of the training-relevant settings, the data files' sha256 and the starting adapter's."""
    settings = {
        group: {key: value for key, value in getattr(config, group).model_dump().items() if keys is None or key in keys}
        for group, keys in TRAINING_KEYS.items()
    }
    settings["model"]["path"] = public_name(config.model.path)
    content = json.dumps([settings, sorted(digests.items()), adapter_sha256], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


class RunFolder:
    """Paths and records of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.adapter = path / "adapter"

    @classmethod
    def create(cls, config: TrainConfig, name: str) -> "RunFolder":
        """Open `<output_root>/<name>` and write config.yaml. Raises UserError where it cannot be written."""
        folder = cls(Path(config.trainer.output_root) / name)
        try:
            folder.checkpoints.mkdir(parents=True, exist_ok=True)
            write_text(folder.path / "config.yaml", yaml.safe_dump(public_settings(config), sort_keys=False))
        except OSError as error:
            raise UserError(f"trainer.output_root: {folder.path} cannot be written: {error.strerror}.") from None
        return folder

    def mark_latest(self, experiment: str) -> None:
        """Point `<output_root>/<experiment>-latest` here, so that a script need not know the hash."""
        partial = self.path.parent / f".{experiment}-latest.{os.getpid()}"
        partial.symlink_to(self.path.name)
        partial.replace(self.path.parent / f"{experiment}-latest")

    def record(self) -> dict[str, Any]:
        """run.json, or an empty record for a new run."""
        path = self.path / "run.json"
        return json.loads(path.read_text()) if path.is_file() else {}

    def update(self, **facts: Any) -> None:
        """Add facts to run.json."""
        record = self.record() | facts
        write_text(self.path / "run.json", json.dumps(record, indent=2, default=_plain) + "\n")

    def append_metrics(self, row: dict[str, Any]) -> None:
        with (self.path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")

    def newest_checkpoint(self) -> Path | None:
        """The newest checkpoint whose save was completed; a folder without the mark may be torn and is passed over."""
        complete = [path for path in self.checkpoints.glob("checkpoint-*") if (path / COMPLETE).is_file()]
        return max(complete, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


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
