"""Training runs of the tiny model through the real path: config to run folder (faults trl-1311, openrlhf-1336)."""

import json
import math
import os
import re
import shutil
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ad4edu_train.errors import UserError
from ad4edu_train.training.callbacks import Interrupt
from ad4edu_train.training.checkpoints import COMPLETE, Checkpoints
from ad4edu_train.training.run import train
from tests.conftest import read_jsonl

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def finished(tiny_run, shared):
    """A finished run of four steps, made once."""
    return train(tiny_run("data.validation_fraction=0.2", output_root=shared))


def test_run_folder_holds_what_the_docs_say(finished):
    record = finished.record()
    assert record["status"] == "finished"
    assert record["step"] == 4
    assert record["synthetic_data"] is True
    assert record["reference"].startswith("the base model tiny-llama")
    assert set(record["trainable_parameters"]) == {"language model"}
    assert len(record["data_sha256"]["train_prefs-00000-of-00001.parquet"]) == 64
    assert record["pairs"]["training"] == 12
    assert (finished.path / "config.yaml").is_file()
    assert (finished.adapter / "adapter_model.safetensors").is_file()
    assert os.stat(finished.path / "validation.jsonl").st_mode & 0o077 == 0
    latest = finished.path.parent / "tiny-latest"
    assert latest.resolve() == finished.path.resolve()


def test_adapter_loads_with_peft_and_changes_the_model(finished, tiny_model):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(tiny_model)
    ids = torch.tensor([[5, 6, 7, 8]])
    before = base(ids).logits
    after = PeftModel.from_pretrained(base, finished.adapter)(ids).logits
    assert not torch.allclose(before, after)


def test_no_folder_of_this_machine_in_the_run_folder(finished, tiny_model, demo_folder):
    folders = [str(path).encode() for path in (tiny_model.parent, demo_folder.parent, finished.path.parent, Path.home())]
    for path in finished.path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for folder in folders:
                assert folder not in content, f"{path.name} holds {folder!r}"
    for name in ("run.json", "config.yaml", "metrics.jsonl"):
        assert not re.search(rf"\b{re.escape(os.uname().nodename)}\b", (finished.path / name).read_text())


def test_trl_1311_step_0_is_all_ties_and_never_0_percent(finished):
    rows = [row for row in read_jsonl(finished.path / "validation.jsonl") if row["step"] == 0]
    assert rows
    assert all(row["margin"] == 0 for row in rows)
    first = next(row for row in read_jsonl(finished.path / "metrics.jsonl") if "validation" in row)["validation"]["all"]
    assert (first["ties"], first["right"], first["pairs"]) == (len(rows), 0, len(rows))


def test_first_loss_is_ln_2_and_the_last_one_is_lower(finished):
    losses = [row["loss"] for row in read_jsonl(finished.path / "metrics.jsonl") if "loss" in row]
    assert losses[0] == pytest.approx(math.log(2), abs=1e-3)
    assert min(losses[1:]) < losses[0]


def test_openrlhf_1336_validation_is_one_row_a_pair_and_its_margin_follows_from_the_log_probs(finished):
    rows = [row for row in read_jsonl(finished.path / "validation.jsonl") if row["step"] == 4]
    assert len({row["pair_id"] for row in rows}) == len(rows) == finished.record()["pairs"]["validation"]
    for row in rows:
        chosen = row["chosen_log_prob"] - row["reference_chosen_log_prob"]
        rejected = row["rejected_log_prob"] - row["reference_rejected_log_prob"]
        assert row["margin"] == pytest.approx(0.1 * (chosen - rejected))
    summary = [row for row in read_jsonl(finished.path / "metrics.jsonl") if "validation" in row][-1]["validation"]["all"]
    assert summary["right"] == sum(row["margin"] > 0 for row in rows)
    assert summary["margin"] == pytest.approx(sum(row["margin"] for row in rows) / len(rows))


def test_openrlhf_1336_what_is_validated_together_changes_no_row(rendered, trainer):
    from ad4edu_train.training.validation import reference_scores, sides_of, validate

    model = trainer(rendered).model
    reference = reference_scores(model, sides_of(rendered))
    together = {row.pair_id: row for row in validate(model, rendered, reference, beta=0.1, step=0)}
    for size in (1, 2, 3, 7):
        for start in range(0, len(rendered), size):
            for row in validate(model, rendered[start : start + size], reference, beta=0.1, step=0):
                assert row.margin == pytest.approx(together[row.pair_id].margin, abs=1e-4)
    assert any(abs(row.margin) > 1e-3 for row in together.values())


def test_a_finished_run_is_not_trained_again(finished, tiny_run, shared, capsys):
    stamp = (finished.adapter / "adapter_model.safetensors").stat().st_mtime_ns
    again = train(tiny_run("data.validation_fraction=0.2", output_root=shared))
    assert again.path == finished.path
    assert (finished.adapter / "adapter_model.safetensors").stat().st_mtime_ns == stamp
    assert "is finished" in capsys.readouterr().out


def test_ctrl_c_saves_and_the_same_command_ends_as_the_unbroken_run(finished, tiny_run, tmp_path, monkeypatch):
    step_end = Interrupt.on_step_end

    def press(self, args, state, control, **more):
        if state.global_step == 1:
            signal.raise_signal(signal.SIGINT)
        step_end(self, args, state, control, **more)

    monkeypatch.setattr(Interrupt, "on_step_end", press)
    broken = train(tiny_run("data.validation_fraction=0.2"))
    assert broken.record()["status"] == "interrupted"
    assert broken.path.name == finished.path.name
    monkeypatch.undo()
    torn = broken.checkpoints / "checkpoint-3"
    shutil.copytree(broken.checkpoints / "checkpoint-1", torn)
    (torn / COMPLETE).unlink()
    (torn / "trainer_state.json").unlink()
    assert Checkpoints(broken.checkpoints, 2).newest().name == "checkpoint-1"
    resumed = train(tiny_run("data.validation_fraction=0.2"))
    assert resumed.record()["status"] == "finished"
    one, other = (load_file(run.adapter / "adapter_model.safetensors") for run in (finished, resumed))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_trl_1311_a_run_that_does_not_move_is_stopped_with_causes(tiny_run):
    with pytest.raises(UserError, match=r"After 3 steps the reward margin is still 0.*Likely causes"):
        train(tiny_run("trainer.learning_rate=1e-30", "trainer.stall_steps=3", "trainer.max_steps=6"))


def test_nan_stops_the_run(tiny_run, monkeypatch):
    from ad4edu_train.training.trainer import PairTrainer

    compute = PairTrainer._compute_loss
    monkeypatch.setattr(PairTrainer, "_compute_loss", lambda *arguments: compute(*arguments) * float("nan"))
    with pytest.raises(UserError, match=r"step 1: (loss|grad_norm) is nan"):
        train(tiny_run())


def test_dry_run_prints_the_plan_and_writes_nothing(tiny_run, tmp_path, capsys):
    assert train(tiny_run("dry_run=true")) is None
    shown = " ".join(capsys.readouterr().out.split())
    for part in (
        "the base model tiny-llama",
        "12 training",
        "tokens",
        "trainable",
        "4 of 8 pairs",
        "memory estimate",
        "SYNTHETIC",
    ):
        assert part in shown
    assert not (tmp_path / "runs").exists()


def test_folder_name_follows_what_is_trained_and_nothing_else(tiny_run, tmp_path):
    from ad4edu_train.training.run_folder import run_hash

    digests = {"train_prefs.parquet": "a" * 64}
    plain = run_hash(tiny_run(), digests, {})
    assert plain == run_hash(
        tiny_run("trainer.log_every=3", "trainer.threads=1", output_root=tmp_path / "elsewhere"), digests, {}
    )
    others = [
        run_hash(tiny_run("dpo.beta=0.2"), digests, {}),
        run_hash(tiny_run("trainer.seed=1"), digests, {}),
        run_hash(tiny_run("lora.r=8"), digests, {}),
        run_hash(tiny_run(), {"train_prefs.parquet": "b" * 64}, {}),
        run_hash(tiny_run(), digests, {"model.adapter": "c" * 64}),
    ]
    assert len({plain, *others}) == 6


def test_output_root_that_cannot_be_written_is_named(tiny_run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"trainer\.output_root: .* cannot be written"):
        train(tiny_run(output_root=tmp_path / "file" / "runs"))


def test_training_on_the_human_labels_is_refused(tiny_run, demo_folder):
    table = demo_folder / "data" / "test_human-00000-of-00001.parquet"
    with pytest.raises(UserError, match="human labels are for evaluation"):
        train(tiny_run(f"data.train={table}", f"data.test_human={table}"))
    with pytest.raises(UserError, match=r"rater_1.*never labels"):
        train(tiny_run(f"data.train={table}"))


def test_a_start_from_an_sft_adapter_names_it_and_checks_what_it_saw(finished, tiny_run, demo_folder, tmp_path):
    prompts = [row["prompt_id"] for row in read_jsonl(demo_folder / "human_val_400.jsonl")]
    (tmp_path / "sft.jsonl").write_text("".join(json.dumps({"prompt_id": prompt_id}) + "\n" for prompt_id in prompts[:1]))
    run = train(
        tiny_run(
            f"model.adapter={finished.adapter}",
            f"data.sft={tmp_path / 'sft.jsonl'}",
            "trainer.max_steps=1",
            "trainer.warmup_steps=0",
        )
    )
    record = run.record()
    assert "with the SFT adapter adapter merged into it" in record["reference"]
    assert record["seen_in_sft"] == {"seen": prompts.count(prompts[0]), "unseen": len(prompts) - prompts.count(prompts[0])}
    assert record["adapters_sha256"]["model.adapter"]
