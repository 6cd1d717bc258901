"""Trackers: where the figures of a run go besides its folder. They are handed numbers and named settings, never a text.

Nothing here imports torch. `training.tracking` decides which figures and settings may go out.
"""

import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from ad4edu_train.errors import UserError
from ad4edu_train.writing import PRIVATE, write_text

# Seconds that a run waits for wandb's server at its start and at its end.
START_SECONDS = 30.0
FINISH_SECONDS = 60.0
# Where the account is, and where wandb may write. Any other variable of wandb (notes, tags, program, host, sweep) is dropped:
# wandb sends what stands in it.
KEPT_VARIABLES = {
    "WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_ENTITY", "WANDB_IDENTITY_TOKEN_FILE", "WANDB_CREDENTIALS_FILE", "WANDB_CONFIG_DIR",
    "WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_HTTP_TIMEOUT", "WANDB_INSECURE_DISABLE_SSL",
}  # fmt: skip
# Given one by one, because wandb fills in what is left unset: from the machine, from git, or from a settings file of the user.
WANDB_SETTINGS: dict[str, Any] = {
    "console": "off",
    "capture_loggers": {},
    "save_code": False,
    "disable_code": True,
    "disable_git": True,
    "disable_job_creation": True,
    "sync_tensorboard": False,
    "label_disable": True,
    "sagemaker_disable": True,
    "launch": False,
    "symlink": False,
    "reinit": "create_new",
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
    "config_paths": (),
    "run_tags": (),
    **dict.fromkeys(
        (
            "host", "username", "email", "program", "program_abspath", "program_relpath", "x_executable", "docker", "notebook_name",
            "git_remote_url", "git_commit", "git_root", "run_notes", "run_group", "run_job_type", "sweep_param_path",
            "launch_config_path", "x_label",
        ),
        "",
    ),
}  # fmt: skip


class Tracker(Protocol):
    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Figures of one optimiser step."""

    def close(self, exit_code: int) -> None:
        """End the run: 0 where training ended in order."""


class TensorBoard:
    """An event file in `<run folder>/tensorboard`, written row by row.

    The file is made here, because the writers of TensorBoard and PyTorch put the host's name into that of the file.
    """

    def __init__(self, folder: Path, step: int, *, synthetic: bool) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        # TensorBoard shows a run by its folder's name.
        logs = folder / "tensorboard" / ("synthetic_data" if synthetic else "ad4edu")
        logs.mkdir(parents=True, exist_ok=True)
        self.file = (logs / f"events.out.tfevents.{time.time_ns()}").open("xb", buffering=0)
        self._write = lambda event: RecordWriter(self.file).write(event.SerializeToString())
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        # TensorBoard drops what an interrupted run wrote beyond the checkpoint that training went on from.
        self._write(Event(wall_time=time.time(), step=step, session_log=SessionLog(status=SessionLog.START)))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        figures = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=figures)))

    def close(self, exit_code: int) -> None:
        self.file.close()


class Wandb:
    """A run of Weights & Biases under `<run folder>/wandb`; with mode `offline` nothing leaves the machine.

    Its id is random, kept in `<run folder>/tracker_id`, and found again by a restart.
    """

    def __init__(
        self, folder: Path, step: int, *, project: str, mode: str, settings: Mapping[str, Any], synthetic: bool
    ) -> None:
        wandb = _import_wandb()
        self.folder = folder
        self._drop_logs()
        name = _kept_id(folder / "tracker_id")
        own = {"run_tags": ("synthetic data",)} if synthetic else {}
        self.run = wandb.init(
            project=project,
            mode=mode,
            id=name,
            name=f"synthetic-data-{name}" if synthetic else name,
            resume="allow",
            config=dict(settings),
            settings=wandb.Settings(
                **WANDB_SETTINGS | own,
                root_dir=str(folder),
                init_timeout=START_SECONDS,
                finish_timeout=FINISH_SECONDS,
                finish_timeout_raises=True,
            ),
        )
        if self.run.url:
            print(f"Tracker: {self.run.url}")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self.run.log(dict(values), step=step)

    def close(self, exit_code: int) -> None:
        try:
            self.run.finish(exit_code=exit_code)
        finally:
            self._drop_logs()

    def _drop_logs(self) -> None:
        """wandb's logs of itself name folders of this machine, and one is a link out of the run folder."""
        for logs in self.folder.glob("wandb/*/logs"):
            shutil.rmtree(logs, ignore_errors=True)


def opener(
    name: str, folder: Path, *, project: str | None, mode: str | None, settings: Mapping[str, Any], synthetic: bool
) -> Callable[[int], Tracker] | None:
    """A function that opens the named tracker at a step, or None for `none`: rank 0 alone calls it."""
    if name == "tensorboard":
        return partial(TensorBoard, folder, synthetic=synthetic)
    if name == "wandb":
        assert project is not None
        assert mode is not None
        return partial(Wandb, folder, project=project, mode=mode, settings=settings, synthetic=synthetic)
    return None


def refuse_unready(name: str, mode: str | None) -> None:
    """Find a tracker that cannot work before anything is loaded. Raises UserError: package missing, or no account."""
    spec = None if name == "none" else find_spec(name)
    # A folder of that name, as wandb makes them, is a namespace without origin.
    if name != "none" and (spec is None or spec.origin is None):
        raise UserError(f"tracker={name} needs the package {name}: pip install 'ad4edu-train[{name}]', or use tracker=none.")
    if name == "wandb" and mode == "online" and not _import_wandb().login(prompt=False, verify=False):
        raise UserError(
            "tracker.mode=online needs an account of wandb, and none is logged in here. Run `wandb login` once, set WANDB_API_KEY, or "
            "use tracker.mode=offline and send the run later with `wandb sync <run folder>/wandb/offline-run-*`."
        )


def _import_wandb() -> Any:
    """wandb without its reports of errors, which hold stack frames, and without the texts of its environment variables."""
    for variable in [key for key in os.environ if key.startswith("WANDB_") and key not in KEPT_VARIABLES]:
        del os.environ[variable]
    os.environ |= {"WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true"}
    import wandb

    logging.getLogger("wandb").setLevel(logging.CRITICAL)
    return wandb


def _kept_id(path: Path) -> str:
    if not path.is_file():
        write_text(path, secrets.token_hex(8), PRIVATE)
    return path.read_text()
