"""What leaves a run through a tracker: figures and named settings, and never anything else (fault anonymizer-191)."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import typing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from transformers import TrainerControl, TrainerState

from ad4edu_train.config import TrainConfig, keys_of
from ad4edu_train.data.vocabulary import AXES
from ad4edu_train.errors import UserError
from ad4edu_train.training import trackers
from ad4edu_train.training.tracking import FIGURES, SETTINGS, Tracking, told_settings
from tests.conftest import ROOT, read_jsonl

SUMMARY = {"pairs": 4, "right": 3, "ties": 0, "margin": 0.5, "chosen_log_prob_change": -1.5}


class Recorder:
    """A tracker that keeps what it is told."""

    def __init__(self, step=0):
        self.opened_at = step
        self.rows = []
        self.exit_code = None

    def log(self, step, values):
        self.rows.append((step, dict(values)))

    def close(self, exit_code):
        self.exit_code = exit_code


@pytest.fixture
def recorder():
    return Recorder()


def state(step=1, *, first_rank=True):
    return TrainerState(global_step=step, is_world_process_zero=first_rank)


def told(tracking, logs, where=None):
    tracking.on_log(None, where or state(), TrainerControl(), logs=logs)


def test_anonymizer_191_only_named_finite_figures_are_sent(recorder):
    tracking = Tracking(lambda step: recorder)
    told(
        tracking,
        {
            **dict.fromkeys(FIGURES, 0.5),
            "grad_norm": float("nan"),
            "entropy": float("inf"),
            "num_tokens": True,
            "learning_rate": "CANARY",
            "CANARY lecture prompt": 1.0,
            "completions": ["CANARY"],
            "keyframes/CANARY.jpg": 2.0,
        },
    )
    [(step, values)] = recorder.rows
    assert step == 1
    assert set(values) == FIGURES - {"grad_norm", "entropy", "num_tokens", "learning_rate"}
    assert all(type(value) is float for value in values.values())


def test_anonymizer_191_validation_is_sent_by_the_axis_names_of_the_card_only(recorder):
    tracking = Tracking(lambda step: recorder)
    groups = ("all", "axis deixis", "axis CANARY", "label source judge", "label source CANARY", "lecture CANARY")
    tracking.validated(state(7), {group: SUMMARY | {"CANARY": 1.0} for group in groups})
    [(step, values)] = recorder.rows
    assert step == 7
    assert set(values) == {
        f"validation/{group}/{figure}" for group in ("all", "axis_deixis", "label_source_judge") for figure in SUMMARY
    }
    assert values["validation/axis_deixis/chosen_log_prob_change"] == -1.5


def texts_in(annotation):
    """Whether a value of this type may be a text that a user makes up."""
    if typing.get_origin(annotation) is typing.Literal:
        return False
    return annotation is str or any(map(texts_in, typing.get_args(annotation)))


def test_anonymizer_191_no_setting_that_is_sent_takes_a_free_text():
    assert set(SETTINGS) <= set(keys_of(TrainConfig))
    for key in SETTINGS:
        group, name = key.split(".")
        assert not texts_in(TrainConfig.model_fields[group].annotation.model_fields[name].annotation), key
    assert texts_in(TrainConfig.model_fields["model"].annotation.model_fields["adapter"].annotation)


def test_settings_are_sent_by_dotted_key(tiny_run):
    values = told_settings(tiny_run().model_dump(), synthetic=True)
    assert set(values) == {*SETTINGS, "synthetic_data"}
    assert values["dpo.beta"] == 0.1
    assert values["dpo.loss"] == ["sigmoid"]
    assert values["synthetic_data"] is True


def test_only_rank_0_opens_a_tracker():
    opened = []
    for first_rank in (False, True):
        with Tracking(lambda step: opened.append(step) or Recorder(step)) as tracking:
            told(tracking, {"loss": 0.5}, state(5, first_rank=first_rank))
        assert opened == ([5] if first_rank else [])


def test_no_tracker_is_opened_where_none_is_asked_for(capsys):
    with Tracking(None) as tracking:
        told(tracking, {"loss": 0.5})
    assert trackers.opener("none", Path(), project=None, mode=None, settings={}, synthetic=True) is None
    assert capsys.readouterr() == ("", "")


def test_mean_seconds_of_the_steps_since_the_last_log_are_sent(recorder):
    tracking = Tracking(lambda step: recorder)
    for _ in range(3):
        tracking.on_step_begin(None, state(), TrainerControl())
        tracking.on_step_end(None, state(), TrainerControl())
    told(tracking, {"loss": 0.5})
    told(tracking, {"loss": 0.5}, state(2))
    assert 0 <= recorder.rows[0][1]["step_seconds"] < 1
    assert "step_seconds" not in recorder.rows[1][1]


@pytest.mark.parametrize("raises", [False, True])
def test_the_track_ends_with_the_exit_code_of_the_training(recorder, raises):
    def run():
        with Tracking(lambda step: recorder) as tracking:
            told(tracking, {"loss": 0.5})
            if raises:
                raise RuntimeError("CANARY")

    if raises:
        with pytest.raises(RuntimeError):
            run()
    else:
        run()
    assert recorder.exit_code == int(raises)


@pytest.mark.parametrize("failing", ["open", "log", "close"])
def test_a_failing_tracker_costs_one_warning_and_no_training(failing, recorder, monkeypatch, capsys):
    def fail(*arguments, **more):
        raise OSError("no space left on device")

    if failing != "open":
        monkeypatch.setattr(recorder, failing, fail)
    with Tracking(fail if failing == "open" else lambda step: recorder) as tracking:
        for step in range(3):
            told(tracking, {"loss": 0.5}, state(step))
    shown = capsys.readouterr().err
    assert shown.count("warning: the tracker failed") == 1
    assert "no space left on device" in shown


def test_tensorboard_reads_back_what_was_sent_and_its_files_name_no_host(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def opened():
        return trackers.opener("tensorboard", tmp_path, project=None, mode=None, settings={"dpo.beta": 0.1}, synthetic=True)

    with Tracking(opened()) as first:
        for step in range(1, 5):
            told(first, {"loss": 1 / step, "CANARY": 1.0}, state(step))
        first.validated(state(4), {f"axis {axis}": SUMMARY for axis in AXES})
    with Tracking(opened()) as resumed:  # from the checkpoint of step 2
        for step in range(3, 6):
            told(resumed, {"loss": 10 / step}, state(step))
    folder = tmp_path / "tensorboard" / "synthetic_data"
    files = sorted(folder.iterdir())
    assert [bool(re.fullmatch(r"events\.out\.tfevents\.\d+", path.name)) for path in files] == [True, True]
    assert not any(b"CANARY" in path.read_bytes() or str(tmp_path).encode() in path.read_bytes() for path in files)
    events = EventAccumulator(str(folder)).Reload()
    assert [(event.step, pytest.approx(event.value)) for event in events.Scalars("loss")] == [
        (1, 1.0), (2, 0.5), (3, 10 / 3), (4, 2.5), (5, 2.0),
    ]  # fmt: skip
    assert events.Scalars("validation/axis_deixis/margin") == []  # of step 4, beyond the checkpoint
    only = EventAccumulator(str(files[0])).Reload()
    assert len(only.Tags()["scalars"]) == 1 + len(AXES) * len(SUMMARY)


def test_a_full_disk_stops_tensorboard_and_not_the_training(tmp_path, capsys):
    board = trackers.TensorBoard(tmp_path, 0, synthetic=False)
    board.file.close()
    board.file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    with Tracking(lambda step: board) as tracking:
        for step in range(3):
            told(tracking, {"loss": 0.5}, state(step))
    assert capsys.readouterr().err.count("No space left on device") == 1


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_missing_package_is_named_before_anything_is_loaded(name, monkeypatch):
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=f"tracker={name} needs the package {name}"):
        trackers.refuse_unready(name, "offline")


def test_no_tracker_is_imported_unless_it_is_asked_for():
    code = (
        "import sys; from ad4edu_train.training import trackers; trackers.refuse_unready('none', None); "
        "print(sorted({'wandb', 'tensorboard', 'torch'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "[]\n"


# The rest is wandb itself, in processes of its own: it keeps what it found in environment and settings files.

# Runs a script as a user would, in a process where libraries log, print and raise the texts of lectures.
LEAKY = """
import logging, platform, runpy, socket, sys
import transformers
from ad4edu_train.training.callbacks import Watchdog
socket.gethostname = platform.node = lambda: "CANARY-HOST"
log, stop_at = transformers.Trainer.log, int(sys.argv.pop(1))
def leaky(self, logs, *more, **named):
    print("CANARY-PROMPT on the console")
    logging.getLogger().warning("CANARY-PROMPT in a log")
    log(self, {**logs, "CANARY-PROMPT": 1.0, "completions": "CANARY-PROMPT"}, *more, **named)
def raising(self, args, state, control, **named):
    if state.global_step == stop_at:
        raise RuntimeError("CANARY-EXCEPTION keyframes/CANARY-KEYFRAME.jpg")
transformers.Trainer.log = leaky
Watchdog.on_step_end = raising
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""
CANARIES = {
    "WANDB_NOTES", "WANDB_NAME", "WANDB_TAGS", "WANDB_RUN_GROUP", "WANDB_JOB_TYPE", "WANDB_HOST", "WANDB_USERNAME", "WANDB_USER_EMAIL",
    "WANDB_PROGRAM", "WANDB_DOCKER", "WANDB_GIT_REMOTE_URL", "WANDB_GIT_COMMIT", "WANDB_DESCRIPTION", "WANDB_LABEL", "WANDB_NOTEBOOK_NAME",
    "AD4EDU_SECRET", "USER", "LOGNAME", "HF_TOKEN", "HOSTNAME",
}  # fmt: skip
HEADER = 7  # bytes at the start of a .wandb file
BLOCK = 32768


def records(path):
    """The records of a .wandb file, a log in the format of LevelDB: checksum (4), length (2), kind (1), and a piece of a record."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, piece = path.read_bytes(), HEADER, b""
    assert content[:4] == b":W&B"
    while at + 7 <= len(content):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        length, kind = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6]
        piece += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or last piece
            yield Record.FromString(piece)
            piece = b""


def strings(value):
    """Every string in plain JSON values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def texts_of(message):
    """Every text of a protobuf message, and of the messages in it."""
    for field, value in message.ListFields():
        for item in value if field.is_repeated else [value]:
            if isinstance(item, str):
                yield item
            elif hasattr(item, "ListFields"):
                yield from texts_of(item)


@pytest.fixture(scope="module")
def user_folder(tmp_path_factory):
    """The folder of a user who is to stay unnamed: a git repository with a remote, and a settings file of wandb."""
    home = tmp_path_factory.mktemp("CANARY-HOME")
    for command in (["init", "-q"], ["remote", "add", "origin", "https://example.org/CANARY-REMOTE.git"]):
        subprocess.run(["git", *command], cwd=home, check=True)
    (home / "settings").mkdir()
    (home / "settings" / "settings").write_text(
        "[default]\nrun_notes = CANARY-SETTINGS-FILE\nconsole = wrap\nsave_code = true\n"
    )
    return home


@pytest.fixture(scope="module")
def tracked(user_folder, tiny_model, demo_folder):
    """tracked(stop_at, *overrides) -> finished process of a tracked run that raises at a step (0: never) in a leaky process."""

    def run(stop_at, *overrides, **variables):
        environment = (
            os.environ | dict.fromkeys(CANARIES, "CANARY-VARIABLE") | {"HOME": str(user_folder), "OMP_NUM_THREADS": "1"}
        )
        return subprocess.run(
            [
                sys.executable, "-c", LEAKY, str(stop_at), str(ROOT / "train_dpo.py"), f"model.path={tiny_model}",
                f"data.root={demo_folder}", "data.max_train_pairs=12", "data.max_tokens=4096", "data.validation_fraction=0.2",
                f"trainer.output_root={user_folder}/CANARY-RUNS", "trainer.learning_rate=0.01", "trainer.batch_size=4",
                "trainer.log_every=1", "trainer.max_steps=4", "trainer.save_every=2", "trainer.threads=1",
                "experiment_name=CANARY-EXPERIMENT", "tracker=wandb", *overrides,
            ],
            cwd=user_folder,
            env=environment | {"WANDB_CONFIG_DIR": str(user_folder / "settings")} | variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def broken_and_restarted(tracked, user_folder):
    """The run folder of a run that raised at step 3 and was started again, tracked offline."""
    broken = tracked(3)
    assert "RuntimeError: CANARY-EXCEPTION" in broken.stderr, broken.stderr[-1000:]
    assert "CANARY-PROMPT on the console" in broken.stdout
    restarted = tracked(0)
    assert restarted.returncode == 0, restarted.stderr[-1000:]
    assert "warning: the tracker" not in broken.stderr + restarted.stderr
    return (user_folder / "CANARY-RUNS" / "CANARY-EXPERIMENT-latest").resolve()


@pytest.fixture(scope="module")
def stretches(broken_and_restarted):
    """The records of both stretches of the run."""
    return [list(records(path)) for path in sorted(broken_and_restarted.glob("wandb/*/*.wandb"))]


def refuse_private(contents, folders):
    """No canary and no folder of this machine in these bytes, in whatever letter case or width."""
    for content in contents:
        plain = content.lower().replace(b"\0", b"")
        for private in (b"canary", b"/home/", b"/tmp/", b"/root/", *(str(folder).lower().encode() for folder in folders)):
            assert private not in plain, private


@pytest.mark.slow
def test_anonymizer_191_nothing_private_lies_in_an_offline_run(broken_and_restarted, stretches, demo_folder, tiny_model):
    below = broken_and_restarted / "wandb"
    found = list(below.rglob("*"))
    assert not [path for path in found if path.is_symlink()]
    files = [path for path in found if path.is_file()]
    assert {path.suffix for path in files} == {".wandb"}
    refuse_private(
        [path.read_bytes() for path in files] + [path.name.encode() for path in found],
        [Path.home(), ROOT, demo_folder, tiny_model, broken_and_restarted, sys.prefix],
    )
    texts = {text for stretch in stretches for record in stretch for text in texts_of(record)}
    assert "loss" in {text for text in texts if text in FIGURES}
    # Each line of each prompt, each keyframe's path and each name of a lecture is a canary too.
    lines = {
        line for row in read_jsonl(demo_folder / "dpo_prompts.jsonl") for text in strings(row) for line in text.splitlines()
    }
    pieces = {line for line in lines if len(line) > 12}
    assert len(pieces) > 20
    assert any(line.endswith(".jpg") for line in pieces)
    whole = "\n".join(texts)
    assert not [line for line in pieces if line in whole]
    private = {socket.gethostname(), os.environ.get("USER", "root"), tiny_model.name, *sys.argv}
    assert not texts & private
    for text in texts:
        assert not re.search(rf"\b{re.escape(socket.gethostname())}\b", text)


@pytest.mark.slow
def test_both_stretches_are_one_run_that_failed_and_then_finished(broken_and_restarted, stretches):
    kept = (broken_and_restarted / "tracker_id").read_text()
    assert re.fullmatch(r"[0-9a-f]{16}", kept)
    runs = [record.run for stretch in stretches for record in stretch if record.HasField("run")]
    assert {(run.run_id, run.display_name, tuple(run.tags)) for run in runs} == {
        (kept, f"synthetic-data-{kept}", ("synthetic data",))
    }
    assert [record.exit.exit_code for stretch in stretches for record in stretch if record.HasField("exit")] == [1, 0]


@pytest.mark.slow
def test_the_figures_that_were_sent_are_those_of_the_run_folder(broken_and_restarted, stretches):
    sent = {}
    for record in stretches[1]:
        if record.HasField("history"):
            row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            sent.setdefault(row["_step"], {}).update(row)
    logged = [row for row in read_jsonl(broken_and_restarted / "metrics.jsonl") if "loss" in row]
    last = {row["step"]: row for row in logged}
    assert {3, 4} <= set(sent)
    for step in (3, 4):
        for name in FIGURES & set(last[step]):
            assert sent[step][name] == pytest.approx(last[step][name]), name
    validation = [row for row in read_jsonl(broken_and_restarted / "metrics.jsonl") if "validation" in row][-1]["validation"]
    assert sent[4]["validation/all/margin"] == pytest.approx(validation["all"]["margin"])


@pytest.mark.slow
def test_the_settings_that_were_sent_are_the_named_ones(stretches, tiny_run):
    for stretch in stretches:
        sent = {
            item.key or "/".join(item.nested_key): json.loads(item.value_json)
            for record in stretch
            if record.HasField("run")
            for item in record.run.config.update
        }
        del sent["_wandb"]
        assert set(sent) == {*SETTINGS, "synthetic_data"}
        assert (sent["trainer.learning_rate"], sent["dpo.beta"], sent["synthetic_data"]) == (0.01, 0.1, True)


@pytest.mark.slow
def test_wandb_online_without_an_account_is_refused_at_start(tracked):
    run = tracked(0, "tracker.mode=online", "trainer.max_steps=3", WANDB_API_KEY="")
    assert run.returncode == 2
    assert "tracker.mode=online needs an account of wandb" in run.stderr
    assert "Traceback" not in run.stderr


class WandbServer(BaseHTTPRequestHandler):
    """Answers as much of wandb's interface as a run needs, and keeps what arrives in `server.arrived`."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.arrived.append(f"{self.path}\n{self.headers}\n".encode() + body)
        asked = json.loads(body) if self.path == "/graphql" else {}
        given = asked.get("variables", {})
        answers = {
            "UpsertBucket": lambda: {
                "upsertBucket": {
                    "bucket": {
                        "id": "1",
                        "name": given["name"],
                        "displayName": given["displayName"],
                        "config": "{}",
                        "historyLineCount": 0,
                        "project": {"id": "1", "name": given["project"], "entity": {"id": "1", "name": "account"}},
                    },
                    "inserted": True,
                }
            },
            "CreateRunFiles": lambda: {
                "createRunFiles": {
                    "runID": "1",
                    "uploadHeaders": [],
                    "files": [{"name": name, "uploadUrl": f"{self.server.url}/upload/{name}"} for name in given["files"]],
                }
            },
        }
        self._answer({"data": answers.get(asked.get("operationName"), dict)()})

    do_PUT = do_POST

    def _answer(self, content):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture
def wandb_server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), WandbServer)
    server.arrived, server.url = [], f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def account(url):
    return {"WANDB_API_KEY": "0" * 40, "WANDB_BASE_URL": url, "NO_PROXY": "127.0.0.1"}


@pytest.mark.slow
def test_anonymizer_191_nothing_private_reaches_the_server_of_an_online_run(tracked, wandb_server, demo_folder):
    run = tracked(0, "tracker.mode=online", "trainer.max_steps=3", **account(wandb_server.url))
    assert run.returncode == 0, run.stderr[-1000:]
    assert "warning: the tracker" not in run.stderr
    assert f"Tracker: {wandb_server.url}/account/ad4edu-train/runs/" in run.stdout
    refuse_private(wandb_server.arrived, [Path.home(), ROOT, demo_folder, sys.prefix])
    whole = b"\n".join(wandb_server.arrived)
    for sent in (b"rewards/margins", b"validation/all/right", b"dpo.beta", b"synthetic data"):
        assert sent in whole
    files = [re.search(rb"/upload/(\S+)", arrived) for arrived in wandb_server.arrived]
    assert {match[1] for match in files if match} <= {b"config.yaml", b"wandb-summary.json"}


TRACK = """
import os, signal, sys
from pathlib import Path
from transformers import TrainerControl, TrainerState
from ad4edu_train.training import trackers
from ad4edu_train.training.tracking import Tracking
trackers.START_SECONDS = trackers.FINISH_SECONDS = 2.0
mode, folder, kill = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "kill"
trackers.refuse_unready("wandb", mode)
with Tracking(trackers.opener("wandb", folder, project="p", mode=mode, settings={}, synthetic=False)) as tracking:
    for step in range(1, 4):
        tracking.on_log(None, TrainerState(global_step=step), TrainerControl(), logs={"loss": 1 / step})
        if kill and step == 1:
            for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                command = Path(f"/proc/{child}/cmdline").read_text()
                if "wandb-core" in command:
                    assert "--no-observability" in command  # it reports no errors of its own
                    os.kill(int(child), signal.SIGKILL)
print("trained")
"""


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["no network", "killed"])
def test_wandb_failing_underneath_costs_one_warning_and_no_training(fault, tmp_path):
    arguments = ["online", "live"] if fault == "no network" else ["offline", "kill"]
    run = subprocess.run(
        [sys.executable, "-c", TRACK, arguments[0], str(tmp_path), arguments[1]],
        env=os.environ | account("http://127.0.0.1:9") | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-1000:]
    assert run.stdout.splitlines()[-1] == "trained"
    assert run.stderr.count("warning: the tracker failed") == 1, run.stderr[-1000:]
