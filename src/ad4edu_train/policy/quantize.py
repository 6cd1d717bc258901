"""QLoRA's 4-bit weights (NF4, double quantisation; Dettmers et al. 2023, section 3): the language model's linear layers, nothing else."""

from typing import TYPE_CHECKING, Any

from ad4edu_train.config import Model
from ad4edu_train.errors import UserError
from ad4edu_train.policy.load import decoder_path

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig


def nf4_config(model: Model, skeleton: Any) -> "BitsAndBytesConfig":
    """What to quantise of a model, found on `skeleton`, the same architecture without storage.

    A list of modules to skip replaces transformers' own, so it names every linear layer outside the decoder: vision tower,
    projector and lm_head, whose weight the loss multiplies by directly.
    """
    import torch
    from torch import nn
    from transformers import BitsAndBytesConfig

    decoder = f"{decoder_path(skeleton)}."
    outside = [
        name for name, module in skeleton.named_modules() if isinstance(module, nn.Linear) and not name.startswith(decoder)
    ]
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, model.dtype),
        bnb_4bit_quant_storage=getattr(torch, model.quantization_storage),
        llm_int8_skip_modules=outside,
    )


def check_quantised(base: Any) -> None:
    """Raise UserError unless exactly the decoder's linear layers are 4-bit."""
    from bitsandbytes.nn import Linear4bit
    from torch import nn

    decoder = f"{decoder_path(base)}."
    linear = {name: isinstance(module, Linear4bit) for name, module in base.named_modules() if isinstance(module, nn.Linear)}
    wrong = [name for name, quantised in linear.items() if quantised != name.startswith(decoder)]
    if wrong or not any(linear.values()):
        raise UserError(
            f"model.quantization=nf4: {len(wrong)} layers are not as they should be (e.g. {', '.join(wrong[:3]) or 'no layer is 4-bit'}). "
            "Vision tower and lm_head stay whole and the language model's layers become 4-bit. Does this version of bitsandbytes fit?"
        )


def keep_one_kernel(base: Any) -> None:
    """On CPUs with AVX512-BF16, bitsandbytes repacks weights at the first forward in evaluation mode, for another kernel in bfloat16.

    A validation would then change what is trained, and the next backward pass fails; so the weights stay as they are.
    """
    from bitsandbytes.nn import Linear4bit

    for module in base.modules():
        if isinstance(module, Linear4bit):
            module.support_avx512bf16_for_cpu = False
