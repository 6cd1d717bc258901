"""A model that can be asked: base weights, an adapter merged or laid over them, and the tokenizer."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ad4edu_train.config import Model
from ad4edu_train.errors import ConfigError, UserError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


ADAPTER_FOLDER = "a folder with adapter_config.json and adapter_model.safetensors"


def public_name(path: str) -> str:
    """A model's name without the folder it lies in: hub ids stay, local paths keep their last part."""
    return Path(path).name if Path(path).is_dir() else path


def refuse_missing_folders(model: Model) -> None:
    """Find a mistyped local path before torch is imported. What could be a hub id is left to the loading itself."""
    if model.path.startswith(("/", ".", "~")) and not (Path(model.path).expanduser() / "config.json").is_file():
        raise ConfigError(
            "model.path", model.path, "a folder with config.json and safetensors weights, or a hub id (owner/name)"
        )
    if model.adapter and not (Path(model.adapter).expanduser() / "adapter_model.safetensors").is_file():
        raise ConfigError("model.adapter", model.adapter, ADAPTER_FOLDER)


def load_tokenizer(model: Model) -> "PreTrainedTokenizerBase":
    """The tokenizer with a chat template; a missing pad token becomes the end token."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model.path, revision=model.revision)
    except (OSError, ValueError) as error:
        raise not_found(model.path, error) from None
    if not tokenizer.chat_template:
        raise UserError(
            f"model.path={public_name(model.path)}: its tokenizer has no chat template, so prompts cannot be rendered as they "
            "are sampled. Use an instruction-tuned model."
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_base(model: Model) -> "PreTrainedModel":
    """Base weights in `model.dtype`; with `model.adapter`, that adapter merged into them.

    Raises UserError when the weights are not at hand or the adapter does not fit them.
    """
    import torch
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(model.path, revision=model.revision)
        kind = _auto_class(config)
        base = kind.from_pretrained(
            model.path,
            revision=model.revision,
            dtype=getattr(torch, model.dtype),
            attn_implementation=model.attention,
            quantization_config=_nf4(model, kind, config),
            use_safetensors=True,
        )
    except (OSError, ValueError, ImportError) as error:
        raise not_found(model.path, error) from None
    # After the imports of transformers: these two need torch.
    from ad4edu_train.policy import moment_tree, tree_attention

    if not moment_tree.reasons_against(base):
        tree_attention.enable(base)
    if model.quantization == "nf4":
        from ad4edu_train.policy.quantize import check_quantised, keep_one_kernel

        check_quantised(base)
        keep_one_kernel(base)
    if model.adapter:
        base = lay_adapter(base, Path(model.adapter)).merge_and_unload()
    # What is saved beside an adapter names its base by this; a user's folder names do not belong there.
    base.config._name_or_path = base.name_or_path = public_name(model.path)
    return base


def lay_adapter(base: "PreTrainedModel", adapter: Path, *, trainable: bool = False) -> Any:
    """A PeftModel of `base` with the adapter of a folder. Raises UserError when a tensor of it finds no place in the base."""
    from peft import PeftModel

    if not (adapter / "adapter_model.safetensors").is_file():
        raise UserError(f"{adapter} holds no adapter_model.safetensors, so it is no LoRA adapter that can be loaded.")
    policy = PeftModel.from_pretrained(base, adapter, is_trainable=trainable)
    _refuse_inert(policy, adapter)
    return policy.eval()


def decoder_path(model: Any) -> str:
    """Dotted path of the text decoder within a causal or vision-language model."""
    decoder = model.get_decoder()
    return next(name for name, module in model.named_modules() if module is decoder)


def _auto_class(config: Any) -> Any:
    """Vision-language models have a class map of their own; taken as plain language models they lose their vision tower."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

    return AutoModelForImageTextToText if type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING else AutoModelForCausalLM


def _nf4(model: Model, kind: Any, config: Any) -> Any:
    if model.quantization == "none":
        return None
    from accelerate import init_empty_weights

    from ad4edu_train.policy.quantize import nf4_config

    with init_empty_weights():
        return nf4_config(model, kind.from_config(config))


def _refuse_inert(policy: Any, adapter: Path) -> None:
    from safetensors import safe_open

    with safe_open(adapter / "adapter_model.safetensors", framework="pt") as tensors:
        saved = {name.replace(".weight", "") for name in tensors.keys()}  # noqa: SIM118 (no mapping)
    live = {name.replace(".default", "").replace(".weight", "") for name, _ in policy.named_parameters() if "lora_" in name}
    if saved != live:
        lost = sorted(saved - live)[:3]
        raise UserError(
            f"{adapter}: {len(saved - live)} of its {len(saved)} tensors have no place in the base model (e.g. {', '.join(lost)}). "
            "It was trained on another architecture, and would silently change nothing."
        )


def not_found(path: str, error: Exception) -> UserError:
    """The error for a model that cannot be loaded, with the library's reason in one line."""
    reason = str(error).splitlines()[0]
    return UserError(
        f"model.path={path} cannot be loaded: {reason} Give a folder with config.json and safetensors weights, or a hub id that is "
        "in the local cache or can be fetched (HF_TOKEN for gated models; HF_HUB_OFFLINE unset)."
    )
