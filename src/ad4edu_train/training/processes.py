"""The processes of one run, as torchrun starts them: which one is this, and is the parallelism that was asked for there?"""

import os
from importlib.util import find_spec
from typing import Any

from ad4edu_train.config import Distributed, TrainConfig
from ad4edu_train.errors import ConfigError, UserError

_LIVE = {
    "none": {"NO"},
    "ddp": {"MULTI_GPU", "MULTI_CPU"},
    "fsdp2": {"FSDP"},
    "deepspeed": {"DEEPSPEED"},
}


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def ranks() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    return rank() == 0


def refuse_unfit_launch(distributed: Distributed) -> None:
    """Raise ConfigError when the number of processes and distributed.kind do not fit; needs no torch."""
    if distributed.kind == "none" and ranks() > 1:
        raise ConfigError(
            "distributed.kind", "none", f"ddp, fsdp2 or deepspeed: torchrun started {ranks()} processes (distributed=ddp)"
        )
    if distributed.kind == "deepspeed" and find_spec("deepspeed") is None:
        raise ConfigError("distributed.kind", "deepspeed", "the package deepspeed (pip install deepspeed), or another kind")
    if distributed.kind != "none" and "WORLD_SIZE" not in os.environ:
        raise ConfigError(
            "distributed.kind",
            distributed.kind,
            "a start by torchrun (torchrun --nproc_per_node=GPUS train_dpo.py ...), or none",
        )


def training_arguments(config: TrainConfig, layers: list[str], use_cpu: bool) -> dict[str, Any]:
    """TrainingArguments of the preset. accelerate's own YAML is not read under torchrun, so everything goes through here.

    `layers` are class names of the layers to shard one by one.
    """
    distributed = config.distributed
    checkpointing = config.trainer.gradient_checkpointing
    if distributed.kind == "ddp":
        # Only adapters of the language model train, and every batch reaches all of them.
        arguments: dict[str, Any] = {"ddp_find_unused_parameters": bool(config.lora.vision_targets)}
        return arguments | ({"ddp_backend": "gloo"} if use_cpu else {})
    if distributed.kind == "fsdp2":
        return {
            "fsdp": True,
            "fsdp_config": {
                "version": 2,
                "transformer_layer_cls_to_wrap": distributed.wrap or layers,
                "cpu_offload": distributed.offload,
                "activation_checkpointing": checkpointing,
                "state_dict_type": "FULL_STATE_DICT",
            },
            "gradient_checkpointing": False,
        }
    if distributed.kind == "deepspeed":
        place = {"device": "cpu"} if distributed.offload else {"device": "none"}
        zero: dict[str, Any] = {"stage": distributed.zero_stage, "offload_optimizer": place}
        if distributed.zero_stage == 3:
            zero |= {"offload_param": place, "stage3_gather_16bit_weights_on_model_save": True}
        return {
            "deepspeed": {
                "zero_optimization": zero,
                "bf16": {"enabled": "auto"},
                "gradient_clipping": "auto",
                "train_micro_batch_size_per_gpu": "auto",
                "gradient_accumulation_steps": "auto",
            }
        }
    return {}


def check_live(kind: str, accelerator: Any) -> None:
    """Raise UserError when accelerate runs another kind of parallelism than was asked for: it falls back without a word."""
    live = str(accelerator.distributed_type).rpartition(".")[2]
    if live not in _LIVE[kind] or accelerator.num_processes != ranks():
        raise UserError(
            f"distributed.kind={kind} was asked for, but {live} with {accelerator.num_processes} of {ranks()} processes is what runs. "
            "Without GPUs only ddp works; with them, start by torchrun and leave accelerate's own settings (ACCELERATE_*) unset."
        )
    if kind == "fsdp2" and getattr(accelerator.state.fsdp_plugin, "fsdp_version", None) != 2:
        raise UserError("distributed.kind=fsdp2 was asked for, but version 1 of FSDP is what runs. Is FSDP_VERSION set?")
