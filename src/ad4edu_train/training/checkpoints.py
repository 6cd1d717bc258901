"""Checkpoints that are whole or absent: written under another name, marked, then renamed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from ad4edu_train.errors import UserError
from ad4edu_train.training import disk

COMPLETE = "COMPLETE"
# What libraries put beside the weights of their own accord: pickled arguments with paths, and model cards.
_LEFTOVERS = ("training_args.bin", "README.md")


class Checkpoints:
    """The checkpoints/ folder of a run; `keep` newest ones stay."""

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder = folder
        self.keep = keep
        self.partial = folder / ".saving"

    def save(self, step: int, write: Callable[[], None], *, main: bool, wait: Callable[[], None]) -> None:
        """Save `checkpoint-<step>`. `write` fills `partial/checkpoint-<step>` on every rank, `wait` is a barrier.

        Raises UserError when the disk refuses; the last complete checkpoint is untouched then.
        """
        if main:
            shutil.rmtree(self.partial, ignore_errors=True)
        wait()
        try:
            write()
            wait()
            if main:
                self._complete(step)
        except Exception as error:
            reason = disk.refusal(error) or getattr(error, "strerror", None)
            if reason is None:
                raise
            shutil.rmtree(self.partial, ignore_errors=True)
            last = self.newest()
            raise UserError(
                f"checkpoint-{step} could not be written to {self.folder}: {reason}. "
                + (f"{last.name} is the last complete one and was kept. " if last else "There is no complete checkpoint yet. ")
                + disk.MAKE_ROOM
            ) from error
        wait()

    def tidy(self) -> None:
        """Delete what a save, done or killed, leaves: half a checkpoint, and complete ones beyond `keep`."""
        for old in sorted(self._complete_ones(), key=step_of)[: -self.keep]:
            self.partial.mkdir(exist_ok=True)
            old.rename(self.partial / old.name)  # a kill while it is deleted leaves no half of it behind its mark
        shutil.rmtree(self.partial, ignore_errors=True)

    def newest(self) -> Path | None:
        """The newest checkpoint whose save was completed; a folder without the mark may be torn and is passed over."""
        return max(self._complete_ones(), key=step_of, default=None)

    def _complete_ones(self) -> list[Path]:
        return [path for path in self.folder.glob("checkpoint-*") if (path / COMPLETE).is_file()]

    def _complete(self, step: int) -> None:
        written, final = self.partial / f"checkpoint-{step}", self.folder / f"checkpoint-{step}"
        for name in _LEFTOVERS:
            for leftover in written.rglob(name):
                leftover.unlink()
        for path in written.rglob("*"):
            if path.is_file():
                _flush(path)
        with (written / COMPLETE).open("w") as mark:
            os.fsync(mark.fileno())
        if final.exists():  # torn, or of the same step before the run was taken back to an older one
            final.rename(self.partial / "replaced")
        written.rename(final)
        self.tidy()


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
