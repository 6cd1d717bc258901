"""The reference of a run: which model it is, in words and in the live policy, and the proof that it is that one."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ad4edu_train.config import TrainConfig
from ad4edu_train.errors import UserError
from ad4edu_train.policy.load import public_name

ADAPTER = "ref"  # the name that TRL gives its frozen copy of a starting adapter


def in_words(config: TrainConfig) -> str:
    """What stands in run.json, so that no one has to guess from settings."""
    name = public_name(config.model.path)
    base = f"{name} with the SFT adapter {Path(config.model.adapter).name} merged into it" if config.model.adapter else None
    if config.lora.start is None:
        return base or f"the base model {name}, unchanged (the policy with its new adapter switched off)"
    start = Path(config.lora.start).name
    if config.dpo.reference == "start":
        return f"{base or name} with a frozen copy of the adapter {start} that training started from"
    return f"{base or f'the base model {name}'} without an adapter; the policy started from the adapter {start}"


def settle(model: Any, which: str) -> None:
    """Make TRL use the reference that was asked for: it copies any starting adapter and takes that."""
    if which == "base" and ADAPTER in model.peft_config:
        model.delete_adapter(ADAPTER)


@contextlib.contextmanager
def as_reference(model: Any) -> Iterator[None]:
    """The policy's model as its reference: the frozen copy of the starting adapter where there is one, else no adapter."""
    from trl.trainer.utils import use_adapter

    with use_adapter(model, ADAPTER if ADAPTER in model.peft_config else None):
        yield


def prove(margins: list[float], config: TrainConfig) -> None:
    """Before the first step every reward margin is 0 where the policy starts as the reference, and not where it does not.

    Raises UserError when the live models are not what `in_words` says.
    """
    same = config.lora.start is None or config.dpo.reference == "start"
    moved = sum(margin != 0 for margin in margins)
    if same and moved:
        raise UserError(
            f"before the first step policy and reference differ on {moved} of {len(margins)} pairs, so the reference is not "
            f"{in_words(config)}. Nothing was trained."
        )
    if not same and not moved:
        raise UserError(
            f"before the first step policy and reference are equal on all {len(margins)} pairs, though the policy starts from "
            f"lora.start={Path(config.lora.start or '').name}. Does that adapter change nothing? Nothing was trained."
        )
