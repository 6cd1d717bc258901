"""Adapters sit on the language model's layers and nowhere else, also where a vision tower has modules of the same names."""

import pytest
from peft import get_peft_model

from ad4edu_train.config import Lora
from ad4edu_train.errors import ConfigError
from ad4edu_train.policy.load import decoder_path
from ad4edu_train.training.lora import check_parts, lora_config, trainable_by_part


@pytest.fixture
def vision_model():
    """A random Qwen2.5-VL of two layers each: vision blocks have gate_proj, up_proj and down_proj like the decoder."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    text = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "vocab_size": 128, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]},
    }  # fmt: skip
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 4,
        "out_hidden_size": 32,
        "fullatt_block_indexes": [1],
    }
    return Qwen2_5_VLForConditionalGeneration(Qwen2_5_VLConfig(text_config=text, vision_config=vision))


def lora(*targets: str) -> Lora:
    return Lora(r=4, alpha=8, dropout=0.0, targets=list(targets), vision_targets=[], start=None, dtype="float32")


def test_only_the_language_model_of_a_vision_model_gets_adapters(vision_model):
    names = [name for name, _ in vision_model.named_modules()]
    assert any("visual" in name and name.endswith("gate_proj") for name in names)
    policy = get_peft_model(vision_model, lora_config(vision_model, lora("q_proj", "gate_proj")))
    adapted = {name for name, parameter in policy.named_parameters() if parameter.requires_grad}
    assert len(adapted) == 2 * 2 * 2  # two layers, two targets, A and B
    assert all("language_model.layers" in name for name in adapted)
    assert set(trainable_by_part(policy)) == {"language model"}


def test_a_target_that_matches_nothing_is_named_with_what_there_is(vision_model):
    with pytest.raises(ConfigError, match=r"lora\.targets='q_prj'.*down_proj.*q_proj"):
        lora_config(vision_model, lora("q_prj"))


def test_trainable_parts_elsewhere_are_refused():
    with pytest.raises(ConfigError, match="nowhere else"):
        check_parts({"language model": 10, "vision tower": 2}, lora("q_proj"))
    with pytest.raises(ConfigError, match="nowhere else"):
        check_parts({}, lora("q_proj"))


def test_decoder_is_found_in_text_and_vision_models(vision_model, tiny_model):
    from transformers import AutoModelForCausalLM

    assert decoder_path(vision_model) == "model.language_model"
    assert decoder_path(AutoModelForCausalLM.from_pretrained(tiny_model)) == "model"
