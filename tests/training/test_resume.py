"""Runs that are cut short go on as if nothing had been: killed, out of disk, extended, or by another version (fault lerobot-3459)."""

import gc
import hashlib
import json
import re
import shutil

import numpy
import pytest
import torch
from safetensors.torch import load_file, save
from torch.utils._pytree import tree_flatten

from ad4edu_train.errors import ConfigError, UserError
from ad4edu_train.training.checkpoints import COMPLETE, Checkpoints
from ad4edu_train.training.run import train
from tests.conftest import read_jsonl
from tests.training.own_process import OwnProcess

pytestmark = pytest.mark.slow

# Three steps an epoch, so saves fall into the middle of both epochs; rows of metrics.jsonl fall between saves.
SIX_STEPS = (
    "data.validation_fraction=0.2",
    "trainer.batch_size=2",
    "trainer.accumulation=2",
    "trainer.max_steps=6",
    "trainer.save_every=2",
    "trainer.validate_every=4",
    "trainer.log_every=3",
    "trainer.threads=1",
)
LAYOUTS = {
    "moment_tree": (),
    # Dropout draws random numbers at every step.
    "stock": (
        "trainer.layout=stock",
        "trainer.precompute_reference=false",
        "trainer.disable_dropout=false",
        "lora.dropout=0.2",
    ),
    "start": ("dpo.reference=start",),
    "base": ("dpo.reference=base",),
}
# Place of the kill -> newest complete checkpoint that it must leave.
KILLS = {
    "before the first checkpoint": {
        "at the first metrics row": None,
        "at step 2": None,
        "in the middle of the first save": None,
    },
    "between steps and in the middle of an epoch": {
        "at step 3": 2,
        "in the first micro-batch of step 4": 2,
        "while a metrics row is appended": 2,
        "in a validation": 2,
        "between validation.jsonl and its metrics row": 2,
        "at step 5": 4,
    },
    "in the middle of a save": {
        "after the adapter's weights": 2,
        "before the optimiser's file": 2,
        "halfway in the optimiser's file": 2,
        "after the optimiser's file": 2,
        "before the mark": 2,
        "between mark and rename": 2,
    },
    "between a save and the rotation": {"between rename and rotation": 6},
    "in the rotation": {"while an older checkpoint is deleted": 6},
    "at the end": {
        "after the last checkpoint": 6,
        "between the last validation.jsonl and its metrics row": 6,
        "before the adapter is saved": 6,
        "in the middle of saving the adapter": 6,
        "after the adapter was saved": 6,
    },
}


@pytest.fixture(scope="module", autouse=True)
def collect_less():
    """transformers collects garbage at the end of every run; of all that was loaded before, that is a third of a tiny run's time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def own():
    process = OwnProcess()
    yield process
    process.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs that several tests look at, by layout."""
    return {"folder": tmp_path_factory.mktemp("unbroken")}


@pytest.fixture
def six_steps(tiny_run, made):
    """six_steps(layout, *overrides) -> config of six steps, with a starting adapter where the layout has one."""

    def configured(layout, *overrides, **named):
        options = (*SIX_STEPS, *LAYOUTS[layout])
        if layout in ("start", "base"):
            if "adapter" not in made:
                other = tiny_run(*SIX_STEPS, "trainer.seed=7", "trainer.max_steps=2", output_root=made["folder"])
                made["adapter"] = train(other).adapter
            options += (f"lora.start={made['adapter']}",)
        return tiny_run(*options, *overrides, **named)

    return configured


@pytest.fixture
def unbroken(six_steps, made):
    """unbroken(layout) -> the finished run folder of six steps in one go."""

    def finished(layout):
        if layout not in made:
            made[layout] = train(six_steps(layout, output_root=made["folder"]))
        return made[layout]

    return finished


@pytest.fixture
def killed(own, tmp_path):
    """killed(config, place) -> how the process ended that killed itself there, with what it said."""

    def run(config, place):
        ended = own.train(config, place)
        assert ended.status == -9, ended.output
        return ended

    return run


def files(run):
    return {str(path.relative_to(run.path)) for path in run.path.rglob("*")}


def metrics(run):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in read_jsonl(run.path / "metrics.jsonl")]


def record(run):
    """run.json without times, and without the state of the code, which may be committed while the tests run."""
    apart = ("seconds", "peak_memory_bytes", "git", "drift")
    return {name: value for name, value in run.record().items() if name not in apart}


def assert_same_values(one, other):
    leaves, shape = tree_flatten(one)
    others, other_shape = tree_flatten(other)
    assert shape == other_shape
    for leaf, twin in zip(leaves, others, strict=True):
        assert torch.equal(leaf, twin) if isinstance(leaf, torch.Tensor) else numpy.array_equal(leaf, twin)


def assert_same_run(run, other):
    """Bit by bit, apart from times and memory."""
    assert run.path.name == other.path.name
    assert run.record()["status"] == "finished"
    assert files(run) == files(other)
    assert (run.path / "validation.jsonl").read_bytes() == (other.path / "validation.jsonl").read_bytes()
    assert metrics(run) == metrics(other)
    assert record(run) == record(other)
    for name in ("metrics.jsonl", "validation.jsonl"):
        assert (run.path / name).stat().st_mode == (other.path / name).stat().st_mode
    for weights in run.path.rglob("*.safetensors"):
        assert weights.read_bytes() == (other.path / weights.relative_to(run.path)).read_bytes(), weights
    last = Checkpoints(run.checkpoints, 1).newest().name
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        states = [torch.load(folder.checkpoints / last / name, weights_only=False) for folder in (run, other)]
        assert_same_values(*states)


@pytest.mark.parametrize("when", KILLS)
def test_a_run_killed_again_and_again_ends_as_the_unbroken_one(when, six_steps, unbroken, killed, tmp_path):
    config, whole = six_steps("moment_tree"), unbroken("moment_tree")
    checkpoints = Checkpoints(tmp_path / "runs" / whole.path.name / "checkpoints", 2)
    for place, left in KILLS[when].items():
        killed(config, place)
        newest = checkpoints.newest()
        assert (newest and newest.name) == (left and f"checkpoint-{left}"), place
    assert_same_run(train(config), whole)


@pytest.mark.parametrize("layout", ["stock", "start", "base"])
def test_a_killed_run_of_any_layout_and_start_ends_as_the_unbroken_one(layout, six_steps, unbroken, killed):
    config, whole = six_steps(layout), unbroken(layout)
    killed(config, "in the first micro-batch of step 4")
    killed(config, "halfway in the optimiser's file")
    assert_same_run(train(config), whole)


def test_the_reference_of_a_run_is_the_adapter_it_started_from(six_steps, unbroken, made):
    kept = load_file(unbroken("start").reference / "adapter_model.safetensors")
    assert_same_values(kept, load_file(made["adapter"] / "adapter_model.safetensors"))
    assert not unbroken("base").reference.exists()


@pytest.mark.parametrize("layout", ["moment_tree", "start"])
def test_lerobot_3459_resume_goes_on_with_the_saved_adapter_alone(layout, six_steps, killed, tmp_path, monkeypatch, capsys):
    from peft import PeftModel
    from peft.tuners.lora import LoraLayer

    from ad4edu_train.training.trainer import PairTrainer

    def config(root):
        return six_steps(layout, "trainer.save_every=3", "trainer.log_every=1", output_root=tmp_path / root)

    killed(config("killed"), "at step 5")
    whole = train(config("whole"))
    saved = load_file(tmp_path / "killed" / whole.path.name / "checkpoints" / "checkpoint-3" / "adapter_model.safetensors")
    seen = []
    step = PairTrainer.training_step

    def look(self, *arguments, **named):
        if not seen:
            live = {
                name.replace(".default.", "."): tensor.detach().clone()
                for name, tensor in self.model.named_parameters()
                if ".default." in name
            }
            layers = [module for module in self.model.modules() if isinstance(module, LoraLayer)]
            seen.append((live, sum(isinstance(module, PeftModel) for module in self.model.modules()), layers))
            assert all(tensor.requires_grad == (".default." in name) for name, tensor in self.model.named_parameters())
        return step(self, *arguments, **named)

    monkeypatch.setattr(PairTrainer, "training_step", look)
    capsys.readouterr()
    resumed = train(config("killed"))
    assert "Continuing from checkpoint-3" in capsys.readouterr().out
    live, wraps, layers = seen[0]
    assert hashlib.sha256(save(live)).hexdigest() == hashlib.sha256(save(saved)).hexdigest()
    assert any(tensor.abs().sum() > 0 for name, tensor in saved.items() if "lora_B" in name)
    adapters = {"default"} if layout == "moment_tree" else {"default", "ref"}
    assert wraps == 1
    assert all(set(layer.lora_A) == adapters and not isinstance(layer.base_layer, LoraLayer) for layer in layers)
    at_4 = [next(row for row in metrics(run) if row["step"] == 4 and "loss" in row) for run in (whole, resumed)]
    assert at_4[0] == at_4[1]
    assert_same_run(resumed, whole)


def test_what_torn_saves_left_is_passed_over_and_cleaned(six_steps, unbroken, killed, tmp_path, capsys):
    config, whole = six_steps("moment_tree"), unbroken("moment_tree")
    killed(config, "between mark and rename")
    checkpoints = tmp_path / "runs" / whole.path.name / "checkpoints"
    assert (checkpoints / ".saving" / "checkpoint-4" / COMPLETE).exists()
    torn = checkpoints / "checkpoint-6"  # what the run will write again
    shutil.copytree(whole.checkpoints / "checkpoint-6", torn)
    (torn / COMPLETE).unlink()
    (torn / "optimizer.pt").write_bytes(b"PK")
    (checkpoints.parent / ".run.json.1.partial").write_text("{")
    run = train(config)
    assert "Continuing from checkpoint-2" in capsys.readouterr().out
    assert_same_run(run, whole)


def test_rotation_keeps_the_newest_complete_ones(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=3)

    def save_at(step):
        def write():
            folder = checkpoints.partial / f"checkpoint-{step}"
            folder.mkdir(parents=True)
            (folder / "weights").write_text(str(step))

        checkpoints.save(step, write, main=True, wait=lambda: None)

    (checkpoints.folder / "checkpoint-9").mkdir(parents=True)  # torn: no mark, so it neither counts nor is taken
    assert checkpoints.newest() is None
    for step in (2, 4, 6, 8, 10, 100):
        save_at(step)
        assert checkpoints.newest().name == f"checkpoint-{step}"
    kept = {path.name for path in checkpoints.folder.iterdir()}
    assert kept == {"checkpoint-8", "checkpoint-9", "checkpoint-10", "checkpoint-100"}


def test_settings_of_now_say_when_a_continued_run_saves(six_steps, unbroken, killed):
    killed(six_steps("moment_tree"), "at step 3")
    run = train(six_steps("moment_tree", "trainer.save_every=1", "trainer.keep_checkpoints=9"))
    assert {path.name for path in run.checkpoints.iterdir()} == {f"checkpoint-{step}" for step in (2, 3, 4, 5, 6)}
    adapter = (run.adapter / "adapter_model.safetensors").read_bytes()
    assert adapter == (unbroken("moment_tree").adapter / "adapter_model.safetensors").read_bytes()


def limits(run):
    """Limits on a file's bytes that the named file breaks, and smaller ones of the same folder keep."""
    sizes = {path.name: path.stat().st_size for path in (run.checkpoints / "checkpoint-6").iterdir()}
    optimiser = sizes.pop("optimizer.pt")
    assert sizes["adapter_model.safetensors"] < sizes["tokenizer.json"] - 1000 < optimiser - 2000
    return {
        "optimiser": optimiser - 1000,
        "tokenizer": sizes["tokenizer.json"] - 1000,
        "adapter": sizes["adapter_model.safetensors"] - 1000,
        "metrics": 700,
    }


@pytest.mark.parametrize(
    ("full_from", "refused", "kept", "says"),
    [
        ("at step 2", "adapter", [], r"checkpoint-2 could not be written to .*: file too large.* no complete checkpoint yet"),
        ("at step 3", "adapter", [2], r"checkpoint-4 could not be written to .*: file too large.* checkpoint-2 is the last"),
        ("at step 3", "tokenizer", [2], r"checkpoint-4 could not be written to .*: file too large.* checkpoint-2 is the last"),
        ("at step 3", "optimiser", [2], r"checkpoint-4 could not be written to .*: no space.* checkpoint-2 is the last"),
        ("at step 3", "metrics", [2], r"tiny-\w+ cannot be written: file too large\. Complete checkpoints were kept"),
        ("before the adapter is saved", "adapter", [4, 6], r"tiny-\w+ cannot be written: file too large"),
    ],
    ids=["first save", "adapter", "tokenizer", "optimiser", "metrics", "at the end"],
)
def test_a_full_disk_keeps_the_last_checkpoint_and_the_same_command_goes_on(
    full_from, refused, kept, says, six_steps, unbroken, own, tmp_path
):
    """The system refuses files above a size (RLIMIT_FSIZE): the real errors of the real calls, as on a disk without room."""
    config, whole = six_steps("moment_tree"), unbroken("moment_tree")
    ended = own.train(config, full_from, limits(whole)[refused])
    assert ended.status == 2, ended.output
    assert "Traceback" not in ended.output
    error = ended.output[ended.output.index("error: ") :]
    assert re.search(says, error), error
    assert "Make room" in error
    assert "the same command then goes on" in error
    folder = tmp_path / "runs" / whole.path.name
    json.loads((folder / "run.json").read_text())
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [f"checkpoint-{step}" for step in kept]
    for step in kept:
        for path in (folder / "checkpoints" / f"checkpoint-{step}").iterdir():
            assert path.stat().st_size > 0 or path.name == COMPLETE
    assert not (folder / "adapter").exists()
    run = train(config)
    assert run.record()["reason"] is None
    assert_same_run(run, whole)


def test_a_second_run_on_the_folder_refuses_until_the_first_is_dead(six_steps, unbroken, own):
    config = six_steps("moment_tree")
    holding = own.train(config, "at step 3", "stop")
    assert holding.stopped
    with pytest.raises(UserError, match=r"is being trained by another process.*Wait for it, stop it, or change a setting"):
        train(config)
    assert own.kill(holding.stopped).status == -9
    assert_same_run(train(config), unbroken("moment_tree"))


def test_extension(six_steps, killed, own, tmp_path, capsys):
    def extended(to, **named):
        return six_steps("moment_tree", f"trainer.extend_to={to}", **named)

    plain = six_steps("moment_tree")
    with pytest.raises(ConfigError, match=r"trainer\.extend_to=8: expected null: there is no run"):
        train(extended(8))
    killed(plain, "at step 3")
    with pytest.raises(ConfigError, match=r"trainer\.extend_to=8: expected null until the run has finished its 6 steps"):
        train(extended(8))
    train(plain)
    with pytest.raises(ConfigError, match=r"trainer\.extend_to=5: expected more than the 6 steps"):
        train(extended(5))
    capsys.readouterr()
    stamp = (tmp_path / "runs" / "tiny-latest" / "adapter" / "adapter_model.safetensors").stat().st_mtime_ns
    same = train(extended(6))
    assert "is finished" in capsys.readouterr().out
    assert (same.adapter / "adapter_model.safetensors").stat().st_mtime_ns == stamp
    assert same.record()["extended_to"] is None
    shutil.copytree(tmp_path / "runs", tmp_path / "copy", symlinks=True)

    whole = train(extended(10, output_root=tmp_path / "copy"))
    said = capsys.readouterr().out
    assert "Going on from step 6 to 10" in said
    assert "Continuing from checkpoint-6" in said
    assert whole.record()["step"] == 10
    assert whole.record()["extended_to"] == 10
    assert [row["step"] for row in metrics(whole) if "validation" in row] == [0, 4, 6, 8, 10]
    # The schedule is laid anew: linear from 0.01 after two warm-up steps to 0 at step 10, where it had come to 0 at step 6.
    rates = {row["step"]: row["learning_rate"] for row in metrics(whole) if "loss" in row}
    assert rates[8] == pytest.approx(0.01 * (10 - 7) / (10 - 2))
    assert_changed(same, whole)

    cut = own.train(extended(10), "at step 9")
    assert cut.status == -9, cut.output
    with pytest.raises(ConfigError, match=r"trainer\.extend_to=12: expected 10 until the run has finished its 10 steps"):
        train(extended(12))
    assert_same_run(train(plain), whole)  # goes on with the extension that was begun
    capsys.readouterr()
    for again in (plain, extended(10)):
        assert_same_run(train(again), whole)
        assert "is finished" in capsys.readouterr().out


def assert_changed(run, other):
    one, two = (load_file(folder.adapter / "adapter_model.safetensors") for folder in (run, other))
    assert any(not torch.equal(tensor, two[name]) for name, tensor in one.items())


def test_other_code_or_versions_are_said_and_recorded(six_steps, unbroken, killed, tmp_path, capsys):
    config, whole = six_steps("moment_tree"), unbroken("moment_tree")
    assert whole.record()["drift"] == []
    path = tmp_path / "runs" / whole.path.name / "run.json"

    def begun_with(versions, commit):
        begun = json.loads(path.read_text())
        begun["versions"] |= versions
        begun["git"]["commit"] = commit
        path.write_text(json.dumps(begun))

    killed(config, "at step 3")
    begun_with({"torch": "2.0.0", "peft": "0.1"}, "0" * 40)
    now = whole.record()["versions"]
    ended = killed(config, "halfway in the optimiser's file")
    first = [f"torch 2.0.0 -> {now['torch']}", f"peft 0.1 -> {now['peft']}"]
    drift = json.loads(path.read_text())["drift"]
    assert drift[:2] == first
    assert drift[2].startswith("code 0000000000 -> ")
    said = " ".join(ended.output.split())
    assert f"Warning: this run began with other code or versions ({', '.join(drift)})" in said
    begun_with({"trl": "1.0"}, json.loads(path.read_text())["git"]["commit"])
    run = train(config)
    assert run.record()["drift"] == [*drift, f"trl 1.0 -> {now['trl']}"]
    assert f"(trl 1.0 -> {now['trl']})" in capsys.readouterr().out
    assert run.record()["versions"] == now
    adapter = (run.adapter / "adapter_model.safetensors").read_bytes()
    assert adapter == (whole.adapter / "adapter_model.safetensors").read_bytes()
