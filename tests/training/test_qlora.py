"""QLoRA on the CPU with the real bitsandbytes: what is 4-bit, what stays whole, what trains in which precision."""

import pytest
import torch

from ad4edu_train.demo.random_vlm import tiny_vlm
from ad4edu_train.errors import UserError
from ad4edu_train.policy.load import load_base
from ad4edu_train.policy.quantize import check_quantised
from ad4edu_train.training.run import train

pytestmark = pytest.mark.slow
NF4 = ("model.quantization=nf4", "trainer.layout=stock")


@pytest.fixture(scope="module")
def vlm(tmp_path_factory):
    return tiny_vlm("qwen2_5_vl", tmp_path_factory.mktemp("vlm") / "qwen2_5_vl")


def four_bit(model) -> set[str]:
    from bitsandbytes.nn import Linear4bit

    return {name for name, module in model.named_modules() if isinstance(module, Linear4bit)}


def test_only_the_language_models_layers_become_4_bit(tiny_run, vlm):
    base = load_base(tiny_run(*NF4, f"model.path={vlm}").model)
    quantised = four_bit(base)
    assert quantised == {
        f"model.language_model.layers.{layer}.{name}"
        for layer in range(2)
        for name in (
            *(f"self_attn.{part}_proj" for part in "qkvo"),
            *(f"mlp.{part}_proj" for part in ("gate", "up", "down")),
        )
    }
    weight = base.model.language_model.layers[0].self_attn.q_proj.weight
    assert weight.quant_state.quant_type == "nf4"
    assert weight.quant_state.nested  # double quantisation
    assert base.lm_head.weight.dtype == torch.float32
    assert base.model.visual.blocks[0].attn.qkv.weight.dtype == torch.float32


def test_4_bit_weights_are_near_the_whole_ones_and_not_equal(tiny_run, vlm):
    path = f"model.path={vlm}"
    whole, quantised = (load_base(tiny_run(path, *options).model).eval() for options in ((), NF4))
    ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
    with torch.no_grad():
        one, other = whole(ids).logits, quantised(ids).logits
    error = float((one - other).norm() / one.norm())
    assert 1e-3 < error < 0.3


def test_a_quantised_lm_head_is_noticed(tiny_run, tiny_model):
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", llm_int8_skip_modules=["model.layers.0"])
    with pytest.raises(UserError, match="layers are not as they should be"):
        check_quantised(AutoModelForCausalLM.from_pretrained(tiny_model, quantization_config=config))


@pytest.mark.parametrize("storage", ["uint8", "float32"])
def test_storage_type_is_that_of_the_settings(tiny_run, storage):
    base = load_base(tiny_run(*NF4, f"model.quantization_storage={storage}").model)
    assert base.model.layers[0].self_attn.q_proj.weight.dtype == getattr(torch, storage)


@pytest.mark.parametrize("optimizer", ["adamw", "adamw_8bit"])
def test_a_run_trains_float32_adapters_on_4_bit_weights_and_says_so(tiny_run, vlm, monkeypatch, optimizer):
    from ad4edu_train.training.trainer import PairTrainer

    seen = {}
    step = PairTrainer.training_step

    def looked_at(self, *arguments, **more):
        seen["adapters"] = {p.dtype for name, p in self.model.named_parameters() if "lora_" in name}
        seen["optimizer"] = type(getattr(self.optimizer, "optimizer", self.optimizer)).__module__
        return step(self, *arguments, **more)

    monkeypatch.setattr(PairTrainer, "training_step", looked_at)
    folder = train(tiny_run(*NF4, f"model.path={vlm}", f"trainer.optimizer={optimizer}", "trainer.gradient_checkpointing=true"))
    record = folder.record()
    assert record["status"] == "finished"
    assert record["precision"] == {
        "base": "nf4 with double quantisation, computed in float32, stored as uint8",
        "adapter": "float32",
        "autocast": "fp32",
    }
    assert seen["adapters"] == {torch.float32}
    assert ("bitsandbytes" in seen["optimizer"]) == (optimizer == "adamw_8bit")
    losses = [row["loss"] for row in folder.rows("metrics.jsonl") if "loss" in row]
    assert min(losses[1:]) < losses[0]


def test_scoring_leaves_4_bit_weights_as_they_are_trained(tiny_run, vlm):
    base = load_base(tiny_run(*NF4, f"model.path={vlm}").model).eval()
    before = base.model.language_model.layers[0].mlp.up_proj.weight.data.clone()
    ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
    with torch.no_grad():
        scored = base(ids).logits
    assert torch.equal(before, base.model.language_model.layers[0].mlp.up_proj.weight.data)
    assert torch.equal(scored, base.train()(ids).logits)


def test_an_adapter_is_not_merged_into_4_bit_weights(tiny_run):
    with pytest.raises(UserError, match=r"merged into 4-bit weights.*lora\.start"):
        tiny_run(*NF4, "model.adapter=some/adapter")


def test_sharded_4_bit_weights_need_the_storage_type_of_the_rest(tiny_run):
    options = ("distributed=fsdp2", "trainer.precompute_reference=false")
    with pytest.raises(UserError, match=r"quantization_storage=uint8 is not sharded"):
        tiny_run(*NF4, *options)
    assert tiny_run(*NF4, *options, "model.quantization_storage=float32")
