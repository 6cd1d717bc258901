"""Two gloo ranks started by torchrun: the same training as one process, nothing counted twice, no rank left waiting."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import load_file

from ad4edu_train.errors import ConfigError
from ad4edu_train.training.run import train
from ad4edu_train.training.run_folder import RunFolder
from tests.conftest import ROOT, read_jsonl

pytestmark = pytest.mark.slow
LAUNCH = (
    sys.executable,
    *("-m", "torch.distributed.run", "--nproc_per_node=2", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0"),
)
STOCK = ("trainer.layout=stock", "trainer.precompute_reference=false")


@pytest.fixture
def two_ranks(tiny_model, demo_folder, tmp_path):
    """two_ranks(*overrides) -> (finished process, run folder or None) of train_dpo.py under torchrun."""

    def run(*overrides, folder=tmp_path / "two", env=None):
        command = [
            *LAUNCH,
            "train_dpo.py",
            *(f"model.path={tiny_model}", f"data.root={demo_folder}", "data.max_train_pairs=12", "data.max_tokens=4096"),
            *("trainer.learning_rate=0.01", "trainer.accumulation=1", "trainer.warmup_steps=2", "trainer.log_every=1"),
            *("trainer.max_steps=3", "trainer.save_every=2", "trainer.threads=1", "experiment_name=tiny", "distributed=ddp"),
            *("data.validation_fraction=0.2", "trainer.batch_size=2", f"trainer.output_root={folder}", *overrides),
        ]
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | (env or {}), capture_output=True, text=True, timeout=150, check=False
        )
        folders = [path for path in folder.glob("tiny-*") if not path.is_symlink()]
        return done, RunFolder(folders[0]) if folders else None

    return run


def losses(folder):
    return [row["loss"] for row in folder.rows("metrics.jsonl") if "loss" in row]


@pytest.mark.parametrize("options", [STOCK, ()], ids=["stock", "moment_tree"])
def test_two_ranks_train_as_one_process_at_the_same_global_batch(tiny_run, two_ranks, options):
    done, two = two_ranks(*options)
    assert done.returncode == 0, done.stderr[-2000:]
    one = train(tiny_run("data.validation_fraction=0.2", "trainer.max_steps=3", "trainer.batch_size=4", *options))
    assert two.record()["processes"] == {"kind": "ddp", "count": 2}
    if options == STOCK:  # moments are laid into batches of a device, so only the stock order is the same pair by pair
        assert losses(two) == pytest.approx(losses(one), abs=2e-5)
        first, second = (load_file(run.adapter / "adapter_model.safetensors") for run in (one, two))
        for name, tensor in first.items():
            assert torch.allclose(tensor, second[name], atol=2e-4), name
    assert losses(two)[0] == pytest.approx(0.693147, abs=1e-5)
    rows = [read_jsonl(run.path / "validation.jsonl") for run in (one, two)]
    keys = [[(row["step"], row["pair_id"]) for row in found] for found in rows]
    assert sorted(keys[0]) == sorted(keys[1])
    assert len(set(keys[1])) == len(keys[1])
    for row, other in zip(
        sorted(rows[0], key=lambda r: (r["step"], r["pair_id"])),
        sorted(rows[1], key=lambda r: (r["step"], r["pair_id"])),
        strict=True,
    ):
        assert other["reference_chosen_log_prob"] == pytest.approx(row["reference_chosen_log_prob"], abs=1e-4)
    assert done.stdout.count("What will be trained") == 1, "only the main process speaks"


def test_a_run_of_two_ranks_goes_on_from_its_checkpoint(two_ranks, tmp_path):
    whole, unbroken = two_ranks(*STOCK, "trainer.max_steps=4", folder=tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr[-2000:]
    _, cut = two_ranks(*STOCK, "trainer.max_steps=4", folder=tmp_path / "cut")
    import shutil

    shutil.rmtree(cut.checkpoints / "checkpoint-4")
    shutil.rmtree(cut.adapter)
    cut.update(status="running")
    done, resumed = two_ranks(*STOCK, "trainer.max_steps=4", folder=tmp_path / "cut")
    assert "Continuing from checkpoint-2" in done.stdout
    assert losses(resumed) == losses(unbroken)
    one, other = (load_file(run.adapter / "adapter_model.safetensors") for run in (unbroken, resumed))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_several_processes_without_a_kind_are_refused(two_ranks):
    done, folder = two_ranks("distributed=none")
    assert done.returncode != 0
    assert folder is None
    assert "torchrun started 2 processes" in done.stdout + done.stderr


def test_a_preset_that_silently_becomes_another_is_refused(two_ranks):
    done, _ = two_ranks("distributed=fsdp2", *STOCK)
    assert done.returncode != 0
    assert "distributed.kind=fsdp2 was asked for, but MULTI_CPU" in done.stdout + done.stderr


def test_a_kind_without_torchrun_is_refused(tiny_run):
    with pytest.raises(ConfigError, match=r"distributed\.kind='ddp'.*torchrun"):
        train(tiny_run("distributed=ddp"))


def test_fsdp2_settings_are_those_that_transformers_hands_to_accelerate(tiny_run, tmp_path):
    from ad4edu_train.training.trainer import trl_arguments

    config = tiny_run("distributed=fsdp2", "distributed.offload=true", "trainer.gradient_checkpointing=true")
    arguments = trl_arguments(config, tmp_path, steps=1, layers=["LlamaDecoderLayer"], use_cpu=True)
    plugin = arguments.fsdp_plugin_args
    assert plugin["fsdp_version"] == 2
    assert plugin["transformer_cls_names_to_wrap"] == "LlamaDecoderLayer"
    assert plugin["cpu_offload"] is True
    assert plugin["activation_checkpointing"] is True
    assert not arguments.gradient_checkpointing  # one of the two, never both
    wrapped = tiny_run("distributed=fsdp2", "distributed.wrap=[Mine]")
    arguments = trl_arguments(wrapped, tmp_path, steps=1, layers=["LlamaDecoderLayer"], use_cpu=True)
    assert arguments.fsdp_plugin_args["transformer_cls_names_to_wrap"] == "Mine"


def test_deepspeed_settings_follow_the_preset(tiny_run):
    from ad4edu_train.training.processes import training_arguments

    three = training_arguments(tiny_run("distributed=zero3", "distributed.offload=true"), [], use_cpu=True)["deepspeed"]
    assert three["zero_optimization"]["stage"] == 3
    assert three["zero_optimization"]["offload_param"] == {"device": "cpu"}
    two = training_arguments(tiny_run("distributed=zero3", "distributed.zero_stage=2"), [], use_cpu=True)["deepspeed"]
    assert two["zero_optimization"] == {"stage": 2, "offload_optimizer": {"device": "none"}}


@pytest.mark.skipif(find_spec("deepspeed") is not None, reason="deepspeed is installed")
def test_deepspeed_that_is_not_installed_is_named(tiny_run):
    with pytest.raises(ConfigError, match="pip install deepspeed"):
        train(tiny_run("distributed=zero3"))


SHARDED = """
import json, os, sys, torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from ad4edu_train.policy.chat import Rendered
from ad4edu_train.policy.log_probs import score_all
from ad4edu_train.config import Model
from ad4edu_train.policy.load import load_base
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig

dist.init_process_group("gloo")
rank = dist.get_rank()
from accelerate import PartialState
PartialState(cpu=True)
model = Model(path=sys.argv[1], revision=None, adapter=None, dtype="float32", attention="sdpa", quantization="none",
              quantization_storage="uint8", thinking=False)
base = load_base(model)
torch.manual_seed(0)
policy = get_peft_model(base, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)).eval()
items = [Rendered(tuple(range(5, 25 + prompt)), tuple(range(30, 34 + ad))) for prompt in range(3) for ad in range(2)]
plain = score_all(policy, items)
for layer in base.model.layers:
    fully_shard(layer)
fully_shard(policy)
shares = sum(p.to_local().numel() for p in policy.parameters()) / sum(p.numel() for p in policy.parameters())
assert shares < 0.6, shares
sharded = score_all(policy, items, rank=rank, ranks=2)
policy.train()
ids = torch.tensor([items[rank].prompt_ids + items[rank].completion_ids])
policy(input_ids=ids, labels=ids).loss.backward()
gradients = [p.grad.full_tensor() for name, p in policy.named_parameters() if "lora_" in name]
assert all(g.abs().sum() > 0 for g in gradients)
if rank == 0:
    print(json.dumps([[plain[item].total, sharded[item].total] for item in items]))
dist.barrier()
dist.destroy_process_group()
"""


def test_sharded_weights_score_as_whole_ones_with_an_odd_number_of_prompts(tiny_model, tmp_path):
    """Three prompts on two ranks: one rank has none left, and must not stay away from a forward that gathers weights."""
    script = tmp_path / "sharded.py"
    script.write_text(SHARDED)
    done = subprocess.run([*LAUNCH, str(script), str(tiny_model)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    pairs = json.loads(done.stdout.strip().splitlines()[-1])
    assert len(pairs) == 6
    for plain, sharded in pairs:
        assert sharded == pytest.approx(plain, abs=1e-4)
