"""Where training starts and what its reference is: said in words, proved on the live models (faults trl-6591, llava-1380)."""

import pytest
import torch
from safetensors.torch import load_file

from ad4edu_train.errors import ConfigError, UserError
from ad4edu_train.training.run import train
from tests.conftest import read_jsonl

pytestmark = pytest.mark.slow
VALIDATED = "data.validation_fraction=0.2"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("starts")


@pytest.fixture
def adapter(tiny_run, shared):
    """An adapter with effect: that of a finished run of four steps."""
    return train(tiny_run(output_root=shared)).adapter


def margins(folder, step):
    return [row["margin"] for row in read_jsonl(folder.path / "validation.jsonl") if row["step"] == step]


def test_trl_6591_an_adapter_kept_as_reference_is_frozen_and_stays_in_the_run_folder(tiny_run, adapter):
    folder = train(tiny_run(VALIDATED, f"lora.start={adapter}"))
    record = folder.record()
    assert record["reference"] == "tiny-llama with a frozen copy of the adapter adapter that training started from"
    assert margins(folder, 0)
    assert all(margin == 0 for margin in margins(folder, 0))
    saved, kept, trained = (
        load_file(place / "adapter_model.safetensors") for place in (adapter, folder.reference, folder.adapter)
    )
    assert all(torch.equal(tensor, kept[name]) for name, tensor in saved.items())
    assert any(not torch.equal(tensor, trained[name]) for name, tensor in saved.items())
    assert not (folder.adapter / "ref").exists()


def test_trl_6591_a_checkpoint_trained_against_the_old_reference_starts_with_its_margin(tiny_run, adapter):
    folder = train(tiny_run(VALIDATED, f"lora.start={adapter}", "dpo.reference=base"))
    record = folder.record()
    assert record["reference"] == "the base model tiny-llama without an adapter; the policy started from the adapter adapter"
    assert any(margin != 0 for margin in margins(folder, 0))
    assert not folder.reference.exists()


def test_the_log_probs_of_the_reference_are_those_of_the_model_that_is_named(tiny_run, adapter, tiny_model):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    plain = train(tiny_run(VALIDATED))
    start = train(tiny_run(VALIDATED, f"lora.start={adapter}"))
    base = train(tiny_run(VALIDATED, f"lora.start={adapter}", "dpo.reference=base"))
    values = [
        [row["reference_chosen_log_prob"] for row in read_jsonl(run.path / "validation.jsonl") if row["step"] == 0]
        for run in (plain, start, base)
    ]
    assert values[0] == values[2]
    assert all(abs(one - other) > 1e-3 for one, other in zip(values[0], values[1], strict=True))
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny_model), adapter)
    assert model.peft_config["default"].base_model_name_or_path == "tiny-llama"


def test_first_loss_is_ln_2_against_the_start_and_not_against_the_base(tiny_run, adapter):
    first = {}
    for which in ("start", "base"):
        folder = train(tiny_run(f"lora.start={adapter}", f"dpo.reference={which}"))
        first[which] = next(row["loss"] for row in folder.rows("metrics.jsonl") if "loss" in row)
    assert first["start"] == pytest.approx(0.693147, abs=1e-5)
    assert abs(first["base"] - 0.693147) > 1e-4


@pytest.mark.parametrize("live", ["true", "false"])
def test_a_reference_that_is_not_the_one_in_words_is_noticed_before_training(tiny_run, adapter, monkeypatch, live):
    from ad4edu_train.training import reference

    monkeypatch.setattr(reference, "settle", lambda model, which: model.delete_adapter("ref"))
    with pytest.raises(UserError, match="policy and reference differ on"):
        train(tiny_run(VALIDATED, f"lora.start={adapter}", "trainer.layout=stock", f"trainer.precompute_reference={live}"))


def test_without_validation_the_proof_takes_training_pairs(tiny_run, adapter, monkeypatch):
    from ad4edu_train.training import reference

    monkeypatch.setattr(reference, "settle", lambda model, which: model.delete_adapter("ref"))
    with pytest.raises(UserError, match="differ on 4 of 4 pairs"):
        train(tiny_run("data.validation_fraction=0", f"lora.start={adapter}"))


def test_an_adapter_that_changes_nothing_is_no_start_against_the_base(tiny_run, adapter, tmp_path):
    import shutil

    from safetensors.torch import save_file

    inert = tmp_path / "inert"
    shutil.copytree(adapter, inert)
    tensors = load_file(inert / "adapter_model.safetensors")
    save_file(
        {name: tensor * 0 if "lora_B" in name else tensor for name, tensor in tensors.items()},
        inert / "adapter_model.safetensors",
    )
    with pytest.raises(UserError, match="equal on all"):
        train(tiny_run(VALIDATED, f"lora.start={inert}", "dpo.reference=base"))


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("lora.r=4", r"lora\.r=4: expected 16"),
        ("lora.alpha=8", r"lora\.alpha=8\.0: expected 32"),
        ("lora.targets=[q_proj]", r"lora\.targets=.*down_proj"),
    ],
)
def test_a_start_of_another_shape_is_refused_with_both_values(tiny_run, adapter, override, named):
    with pytest.raises(ConfigError, match=named):
        train(tiny_run(f"lora.start={adapter}", override))


def test_a_missing_start_is_named_before_any_model(tiny_run):
    with pytest.raises(ConfigError, match=r"lora\.start='nowhere'"):
        train(tiny_run("lora.start=nowhere", "model.path=owner/never-loaded"))


def test_reference_base_without_a_start_is_refused(tiny_run):
    with pytest.raises(UserError, match=r"dpo\.reference=base needs lora\.start"):
        tiny_run("dpo.reference=base")


@pytest.mark.parametrize("preset", ["fsdp2", "zero3"])
def test_a_kept_reference_under_sharding_is_refused_since_it_could_not_be_resumed(tiny_run, preset):
    with pytest.raises(UserError, match=r"lora\.start with dpo\.reference=start does not go with distributed\.kind"):
        tiny_run(f"distributed={preset}", "lora.start=some/adapter")


def test_agreement_takes_the_reference_that_the_run_had(tiny_run, adapter, compose, tiny_model, demo_folder, tmp_path):
    from ad4edu_train.agreement.evaluate import evaluate
    from ad4edu_train.config import EvaluateConfig

    found = []
    for which in ("start", "base"):
        run = train(tiny_run(f"lora.start={adapter}", f"dpo.reference={which}"))
        out = tmp_path / which
        common = (f"model.path={tiny_model}", f"data.root={demo_folder}", f"out={out}")
        rows = read_jsonl(evaluate(compose(EvaluateConfig, "evaluate", f"checkpoints=[{run.path}]", *common)) / "pairs.jsonl")
        found.append([row["preferences"] | {"run": None} for row in rows])
        reward = f"{run.path.name}, implicit reward"
        direct = f"{run.path.name}, log-prob per token"
        assert all(row["preferences"][reward] is not None and row["preferences"][direct] is not None for row in rows)
        if which == "start":
            scores = {row["pair_id"]: row["preferences"][reward] for row in rows}
            plain = evaluate(
                compose(EvaluateConfig, "evaluate", f"checkpoints=[{run.adapter}]", *common[:2], f"out={tmp_path / 'plain'}")
            )
            against_base = {
                row["pair_id"]: row["preferences"]["adapter, implicit reward"] for row in read_jsonl(plain / "pairs.jsonl")
            }
            assert any(abs(scores[pair] - against_base[pair]) > 1e-3 for pair in scores)
