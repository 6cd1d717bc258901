"""Random vision-language models of the real architectures: tiny ones to try the keyframe path anywhere, wide ones to measure GPUs.

Nothing is pretrained: what they say has no meaning, and no figure of theirs speaks of quality.
"""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ad4edu_train.demo.cache import cache_root, made_once

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

IMAGE_TOKENS = ("<|vision_start|>", "<|image_pad|>", "<|video_pad|>", "<|vision_end|>")
VOCABULARY = 2000
# The layout of the Qwen-VL chat format: images and texts of a turn in order, an image as one placeholder between its marks.
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for block in message['content'] %}{% if block['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ block['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


# Heads of 32: the smallest that vLLM's CPU kernel takes. The three parts of mrope_section sum to half of that.
_TEXT: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]},
    "tie_word_embeddings": True,
}
_VISION: dict[str, Any] = {"depth": 2, "hidden_size": 64, "intermediate_size": 128, "num_heads": 2, "out_hidden_size": 64}
TINY_TEXT = {"qwen2_5_vl": _TEXT, "qwen3_vl": _TEXT | {"head_dim": 32}}
TINY_VISION = {
    "qwen2_5_vl": _VISION | {"fullatt_block_indexes": [1], "window_size": 112},
    "qwen3_vl": _VISION | {"patch_size": 16, "num_position_embeddings": 256, "deepstack_visual_indexes": [0, 1]},
}


def tiny_vlm(family: str, folder: Path | None = None) -> Path:
    """Folder of a random model of `family` ("qwen2_5_vl" or "qwen3_vl") with tokenizer and image processor, written once."""
    sizes: dict[str, Any] = {"text": TINY_TEXT[family], "vision": TINY_VISION[family], "spread": 4.0}
    return made_once(folder or cache_root() / f"tiny-random-{family}", lambda written: write_vlm(family, written, **sizes))


def write_vlm(
    family: str, folder: Path, *, text: dict[str, Any], vision: dict[str, Any], dtype: str = "float32", spread: float = 1.0
) -> None:
    """Write a random model of `family` with the given sizes (keys of transformers' configs), tokenizer and image processor.

    Weights of the default size give tiny models nearly flat distributions; `spread` multiplies them.
    """
    import torch
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    tokenizer = _tokenizer()
    build, patch = {"qwen2_5_vl": (_qwen2_5_vl, 14), "qwen3_vl": (_qwen3_vl, 16)}[family]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    text = (
        {"vocab_size": len(tokenizer)} | text | {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    )
    with torch.random.fork_rng(), torch.device(device):
        torch.manual_seed(0)
        model = build(text, vision, _ids(tokenizer) | {"tie_word_embeddings": text.get("tie_word_embeddings", False)})
        model = model.to(getattr(torch, dtype))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() >= 2:
                    parameter.mul_(spread)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(patch_size=patch, merge_size=2).save_pretrained(folder)


def _tokenizer() -> "PreTrainedTokenizerFast":
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False, special_tokens=[]
    )
    topics = files("ad4edu_train.demo") / "topics"
    tokenizer.train_from_iterator([path.read_text() for path in sorted(topics.iterdir(), key=str)], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>", *IMAGE_TOKENS],
        chat_template=TEMPLATE,
    )


def _ids(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    start, image, video, end = (int(tokenizer.convert_tokens_to_ids(token)) for token in IMAGE_TOKENS)  # type: ignore[arg-type]
    return {
        "vision_start_token_id": start,
        "image_token_id": image,
        "video_token_id": video,
        "vision_end_token_id": end,
    }


def _qwen2_5_vl(text: dict[str, Any], vision: dict[str, Any], ids: dict[str, Any]) -> "PreTrainedModel":
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    return Qwen2_5_VLForConditionalGeneration(Qwen2_5_VLConfig(text_config=text, vision_config=vision, **ids))


def _qwen3_vl(text: dict[str, Any], vision: dict[str, Any], ids: dict[str, Any]) -> "PreTrainedModel":
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    return Qwen3VLForConditionalGeneration(Qwen3VLConfig(text_config=text, vision_config=vision, **ids))
