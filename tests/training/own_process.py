"""Training runs in processes of their own that die, stop or run out of disk at a named place.

Run as a script it imports everything once and then forks for each job, so that a killed run costs no import. Jobs are lines of
JSON on stdin, answers lines of JSON on stdout.
"""

import fcntl
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PIPE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Ended:
    """How a process ended: `signal` (negative) or exit status, as subprocess gives them; `stopped` is the id of a stopped one."""

    status: int | None
    stopped: int | None
    output: str


class OwnProcess:
    """The test's side: start the script once, send it jobs."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.training.own_process"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )

    def train(self, config: Any, place: str | None = None, action: str | int = "kill") -> Ended:
        """Train until the end or until `place`, where the process is killed (SIGKILL), stopped (SIGSTOP), or finds the
        system refusing files longer than `action` bytes."""
        return self._ask({"config": config.model_dump(), "place": place, "action": action})

    def kill(self, stopped: int) -> Ended:
        return self._ask({"kill": stopped})

    def close(self) -> None:
        self.server.stdin.close()
        self.server.wait()

    def _ask(self, job: dict[str, Any]) -> Ended:
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        return Ended(**json.loads(self.server.stdout.readline()))


def places() -> dict[str, tuple[Any, str, Callable[..., bool], str]]:
    """(owner, method, is this call the one?, "before", "after" or "half" of it) by name, for runs of six steps that save every two."""
    import shutil

    import torch

    from ad4edu_train.training.callbacks import Record
    from ad4edu_train.training.checkpoints import Checkpoints
    from ad4edu_train.training.run_folder import RunFolder
    from ad4edu_train.training.session import Session
    from ad4edu_train.training.trainer import PairTrainer
    from ad4edu_train.training.watch import Watch

    def begins(step: int) -> Callable[..., bool]:
        return lambda self, args, state, *_, **__: state.global_step == step - 1

    def into(checkpoint: str) -> Callable[..., bool]:
        return lambda self, folder, *_, **__: str(folder).endswith(checkpoint)

    return {
        "at the first metrics row": (RunFolder, "append_metrics", lambda *_: True, "half"),
        "at step 2": (Record, "on_step_begin", begins(2), "before"),
        "in the middle of the first save": (PairTrainer, "save_model", into("checkpoint-2"), "after"),
        "at step 3": (Record, "on_step_begin", begins(3), "before"),
        "at step 5": (Record, "on_step_begin", begins(5), "before"),
        "at step 9": (Record, "on_step_begin", begins(9), "before"),
        "in the first micro-batch of step 4": (
            PairTrainer,
            "training_step",
            lambda self, *_, **__: self.state.global_step == 3 and not self.accelerator.sync_gradients,
            "after",
        ),
        "while a metrics row is appended": (
            RunFolder,
            "append_metrics",
            lambda self, row: row["step"] == 3 and "loss" in row,
            "half",
        ),
        "in a validation": (Watch, "_rows", lambda self, pairs, step: step == 4, "after"),
        "between validation.jsonl and its metrics row": (
            RunFolder,
            "append_metrics",
            lambda self, row: row["step"] == 4 and "validation" in row,
            "before",
        ),
        "after the adapter's weights": (PairTrainer, "save_model", into("checkpoint-4"), "after"),
        "before the optimiser's file": (PairTrainer, "_save_optimizer_and_scheduler", into("checkpoint-4"), "before"),
        "halfway in the optimiser's file": (
            torch,
            "save",
            lambda state, path, *_, **__: str(path).endswith("checkpoint-4/optimizer.pt"),
            "half",
        ),
        "after the optimiser's file": (PairTrainer, "_save_optimizer_and_scheduler", into("checkpoint-4"), "after"),
        "before the mark": (Checkpoints, "_complete", lambda self, step: step == 4, "before"),
        "between mark and rename": (Path, "rename", into("checkpoints/checkpoint-4"), "before"),
        "between rename and rotation": (Path, "rename", into("checkpoints/checkpoint-6"), "after"),
        "while an older checkpoint is deleted": (
            shutil,
            "rmtree",
            lambda path, **_: path.name == ".saving" and (path / "checkpoint-2").exists(),
            "before",
        ),
        "after the last checkpoint": (Checkpoints, "save", lambda self, step, *_, **__: step == 6, "after"),
        "between the last validation.jsonl and its metrics row": (
            RunFolder,
            "append_metrics",
            lambda self, row: row["step"] == 6 and "validation" in row,
            "before",
        ),
        "before the adapter is saved": (Session, "_save_adapter", lambda *_: True, "before"),
        "in the middle of saving the adapter": (PairTrainer, "save_model", into(".adapter"), "after"),
        "after the adapter was saved": (Session, "_save_adapter", lambda *_: True, "after"),
    }


def _set(place: str, action: str | int) -> None:
    owner, name, wanted, when = places()[place]
    original = getattr(owner, name)

    def patched(*arguments: Any, **named: Any) -> Any:
        if not wanted(*arguments, **named):
            return original(*arguments, **named)
        if when == "half":
            _half(original, arguments, named)
        if when != "after":
            _act(action)
        result = original(*arguments, **named)
        if when == "after":
            _act(action)
        return result

    setattr(owner, name, patched)


def _half(original: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Do all of it, then cut off half of what it wrote."""
    path = Path(arguments[1]) if original.__name__ == "save" else arguments[0].path / "metrics.jsonl"
    before = path.stat().st_size if path.exists() else 0
    original(*arguments, **named)
    os.truncate(path, (before + path.stat().st_size) // 2)


def _act(action: str | int) -> None:
    if isinstance(action, int):
        resource.setrlimit(resource.RLIMIT_FSIZE, (action, resource.RLIM_INFINITY))
    else:
        os.kill(os.getpid(), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[action])


def _train(config: dict[str, Any], place: str | None, action: str | int) -> int:
    from ad4edu_train.config import TrainConfig
    from ad4edu_train.errors import plain_errors
    from ad4edu_train.training.run import train

    if place:
        _set(place, action)
    try:
        with plain_errors():
            train(TrainConfig.model_validate(config))
    except SystemExit as ended:
        return int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _start(config: dict[str, Any], place: str | None, action: str | int) -> tuple[int, int]:
    """(process id, its output's end of a pipe)."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        os.close(reading)
        status = _train(config, place, action)
        sys.stdout.flush()
        os._exit(status)
    os.close(writing)
    os.set_blocking(reading, False)
    return child, reading


def _ended(child: int, reading: int) -> dict[str, Any]:
    _, status = os.waitpid(child, os.WUNTRACED)
    chunks = []
    while True:
        try:
            chunk = os.read(reading, PIPE_BYTES)
        except BlockingIOError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    stopped = os.WIFSTOPPED(status)
    return {
        "status": None if stopped else os.waitstatus_to_exitcode(status),
        "stopped": child if stopped else None,
        "output": b"".join(chunks).decode(),
    }


def main() -> None:
    places()  # imports torch, transformers, TRL and PEFT
    import transformers.models.llama.modeling_llama  # noqa: F401

    import ad4edu_train.training.run  # noqa: F401

    gc.collect()
    gc.freeze()  # what is there already is not collected again by every child
    pipes: dict[int, int] = {}
    for line in sys.stdin:
        job = json.loads(line)
        if "kill" in job:
            child = job["kill"]
            os.kill(child, signal.SIGKILL)
        else:
            child, reading = _start(**job)
            pipes[child] = reading
        print(json.dumps(_ended(child, pipes[child])), flush=True)
    os._exit(0)  # past the libraries' reports on their own shutdown


if __name__ == "__main__":
    main()
