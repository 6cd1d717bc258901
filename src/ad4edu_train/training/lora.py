"""Which modules get an adapter: those of the language model, by their full path; of a vision tower only where that is asked for."""

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ad4edu_train.config import Lora
from ad4edu_train.errors import ConfigError
from ad4edu_train.policy.load import decoder_path, lay_adapter

if TYPE_CHECKING:
    from peft import LoraConfig
    from torch import nn

_VISION = re.compile(r"(?:^|\.)(?i:visual|vision|image)[^.]*\.")


def lora_config(model: "nn.Module", lora: Lora) -> "LoraConfig":
    """PEFT's config with a regular expression over full paths. Raises ConfigError when a target matches no module."""
    from peft import LoraConfig

    decoder = decoder_path(model)
    names = [name for name, _ in model.named_modules()]
    language = rf"{re.escape(decoder)}\.(?:.+\.)?"
    tower = rf"(?!{re.escape(decoder)}\.).*{_VISION.pattern}(?:.+\.)?"
    for key, path, targets in (("lora.targets", language, lora.targets), ("lora.vision_targets", tower, lora.vision_targets)):
        for target in targets:
            if not any(re.fullmatch(_pattern(path, [target]), name) for name in names):
                part = "language model" if key == "lora.targets" else "vision tower"
                raise ConfigError(key, target, f"the last name of a module of the {part} ({_candidates(model, path)})")
    pattern = _pattern(language, lora.targets)
    if lora.vision_targets:
        pattern = f"{pattern}|{_pattern(tower, lora.vision_targets)}"
    return LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]  # PEFT scales by alpha / r, a fraction is fine
        lora_dropout=lora.dropout,
        target_modules=pattern,
        task_type="CAUSAL_LM",
    )


def lay_lora(base: Any, config: "LoraConfig", lora: Lora) -> Any:
    """The policy that starts from `lora.start`, or None where a fresh adapter will be laid by TRL.

    Raises ConfigError when the starting adapter is not of the shape that the settings name.
    """
    if lora.start is None:
        return None
    policy = lay_adapter(base, Path(lora.start).expanduser(), trainable=True)
    saved = policy.peft_config["default"]
    for key, asked, found in (("lora.r", lora.r, saved.r), ("lora.alpha", lora.alpha, saved.lora_alpha)):
        if asked != found:
            raise ConfigError(key, asked, f"{found}, that of the starting adapter {Path(lora.start).name}")
    asked_for = {name for name, _ in base.named_modules() if re.fullmatch(str(config.target_modules), name)}
    adapted = {name.removeprefix("base_model.model.") for name, module in policy.named_modules() if hasattr(module, "lora_A")}
    if adapted != asked_for:
        raise ConfigError(
            "lora.targets",
            lora.targets,
            f"the modules of the starting adapter ({', '.join(sorted({_last(n) for n in adapted}))})",
        )
    return policy


def parts_of(base: Any, config: "LoraConfig") -> dict[str, int]:
    """Trainable parameters by model part as PEFT would make them, counted on a model without storage."""
    from accelerate import init_empty_weights
    from peft import get_peft_model

    with init_empty_weights():
        skeleton = type(base)(base.config)
        return trainable_by_part(get_peft_model(skeleton, config))


def trainable_by_part(model: "nn.Module") -> dict[str, int]:
    """Number of trainable parameters by model part; parts without any are left out."""
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            counts[_part(name)] += parameter.numel()
    return dict(counts)


def check_parts(parts: dict[str, int], lora: Lora) -> None:
    """Only the language model may train, and the vision tower where it was asked for. Raises ConfigError otherwise."""
    wanted = {"language model", "vision tower"} if lora.vision_targets else {"language model"}
    if set(parts) != wanted:
        raise ConfigError(
            "lora.targets", parts, f"trainable parameters in the {' and the '.join(sorted(wanted))} and nowhere else"
        )


def _pattern(path: str, targets: list[str]) -> str:
    return rf"{path}(?:{'|'.join(map(re.escape, targets))})"


def _part(name: str) -> str:
    if _VISION.search(name):
        return "vision tower"
    return "lm_head" if "lm_head" in name else "language model"


def _candidates(model: "nn.Module", path: str) -> str:
    from torch import nn

    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    return ", ".join(sorted({_last(name) for name in linear if re.fullmatch(f"{path}[^.]+", name)})) or "which it lacks"


def _last(name: str) -> str:
    return name.rpartition(".")[2]
