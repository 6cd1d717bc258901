"""Which modules get an adapter: those of the language model, by their full path, never of a vision tower."""

import re
from collections import Counter
from typing import TYPE_CHECKING

from ad4edu_train.config import Lora
from ad4edu_train.errors import ConfigError

if TYPE_CHECKING:
    from peft import LoraConfig
    from torch import nn

_VISION = re.compile(r"(^|\.)(visual|vision|image)", re.IGNORECASE)


def lora_config(model: "nn.Module", lora: Lora) -> "LoraConfig":
    """PEFT's config with a regular expression over full paths. Raises ConfigError when a target matches no module."""
    from peft import LoraConfig

    decoder = decoder_path(model)
    for target in lora.targets:
        if not any(re.fullmatch(_pattern(decoder, [target]), name) for name, _ in model.named_modules()):
            raise ConfigError(
                "lora.targets", target, f"the last name of a module of the language model ({_candidates(model, decoder)})"
            )
    return LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]  # PEFT scales by alpha / r, a fraction is fine
        lora_dropout=lora.dropout,
        target_modules=_pattern(decoder, lora.targets),
        task_type="CAUSAL_LM",
    )


def decoder_path(model: "nn.Module") -> str:
    """Dotted path of the text decoder within a causal or vision-language model."""
    decoder = model.get_decoder()  # type: ignore[operator]
    return next(name for name, module in model.named_modules() if module is decoder)


def trainable_by_part(model: "nn.Module") -> dict[str, int]:
    """Number of trainable parameters by model part; parts without any are left out."""
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            counts[_part(name)] += parameter.numel()
    return dict(counts)


def check_parts(parts: dict[str, int]) -> None:
    """Only the language model may train. Raises ConfigError otherwise."""
    if set(parts) != {"language model"}:
        raise ConfigError("lora.targets", parts, "trainable parameters in the language model and nowhere else")


def _pattern(decoder: str, targets: list[str]) -> str:
    return rf"{re.escape(decoder)}\.(?:.+\.)?(?:{'|'.join(map(re.escape, targets))})"


def _part(name: str) -> str:
    if _VISION.search(name):
        return "vision tower"
    return "lm_head" if "lm_head" in name else "language model"


def _candidates(model: "nn.Module", decoder: str) -> str:
    from torch import nn

    names = {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name.startswith(decoder)
    }
    return ", ".join(sorted(names))
