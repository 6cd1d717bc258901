"""One forward for all ADs of a moment: the prompt once, every distinct AD a branch of it. Same log-probs, a tenth of the tokens.

A packed row holds a prompt without its last token, then the branches. Each branch begins with that last token, so that every
position predicts exactly one token, and attends to the prompt and to itself alone. Positions go on from the prompt in every branch.
Exact for text decoders with plain causal attention (docs/method.md); others are refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ad4edu_train.errors import ConfigError

# Per-token outputs of TRL's head that its loss and metrics read.
FIELDS = ("log_probs", "entropy", "mean_logits", "is_top1")
IGNORED = -100


@dataclass(frozen=True)
class Branch:
    """Where the tokens of one AD lie: packed row, first position there, and the (row, prompt length) of each pair side it serves."""

    row: int
    start: int
    completion: tuple[int, ...]
    sides: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Packed:
    """Model inputs for packed rows, all (moments, tokens) but attention_mask, which is boolean (moments, 1, tokens, tokens).

    `tokens` counts what is run, padding aside.
    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    attention_mask: torch.Tensor
    shift_labels: torch.Tensor
    branches: list[Branch]
    tokens: int


def pack(input_ids: torch.Tensor, labels: torch.Tensor, pad_id: int) -> Packed:
    """Pack TRL's pair layout: input_ids and labels (2 x pairs, tokens), right-padded, labels -100 outside the completions."""
    trees: dict[tuple[int, ...], dict[tuple[int, ...], list[tuple[int, int]]]] = {}
    for side, (ids, marks) in enumerate(zip(input_ids.tolist(), labels.tolist(), strict=True)):
        length = next(index for index, mark in enumerate(marks) if mark != IGNORED)
        completion = tuple(mark for mark in marks[length:] if mark != IGNORED)
        trees.setdefault(tuple(ids[:length]), {}).setdefault(completion, []).append((side, length))
    rows = [_lay(index, prompt, completions) for index, (prompt, completions) in enumerate(trees.items())]
    width = max(len(row.ids) for row in rows)
    device = input_ids.device

    def padded(name: str, fill: int) -> torch.Tensor:
        return torch.tensor([getattr(row, name) + [fill] * (width - len(row.ids)) for row in rows], device=device)

    return Packed(
        input_ids=padded("ids", pad_id),
        position_ids=padded("positions", 0),
        attention_mask=_mask(padded("members", -1)),
        shift_labels=padded("labels", IGNORED),
        branches=[branch for row in rows for branch in row.branches],
        tokens=sum(len(row.ids) for row in rows),
    )


def unpack(values: torch.Tensor, branches: list[Branch], shape: tuple[int, int]) -> torch.Tensor:
    """Per-token values (moments, tokens) of packed rows -> pair layout (2 x pairs, tokens - 1), zero outside the completions."""
    out = values.new_zeros(shape)
    for branch in branches:
        tokens = values[branch.row, branch.start : branch.start + len(branch.completion)]
        for side, length in branch.sides:
            out[side, length - 1 : length - 1 + len(branch.completion)] = tokens
    return out


class TreeForward:
    """Stands where TRL calls the model: takes its pair layout, runs packed rows, gives per-token outputs back in pair layout.

    `tokens` counts those of the last call, padding aside.
    """

    def __init__(self, model: Callable[..., Any], pad_id: int) -> None:
        self.model = model
        self.pad_id = pad_id
        self.tokens = 0

    def __call__(self, *, input_ids: torch.Tensor, attention_mask: torch.Tensor, labels: torch.Tensor, **kwargs: Any) -> Any:
        packed = pack(input_ids, labels, self.pad_id)
        self.tokens = packed.tokens
        outputs = self.model(
            input_ids=packed.input_ids,
            attention_mask=packed.attention_mask,
            position_ids=packed.position_ids,
            shift_labels=packed.shift_labels,
            **kwargs,
        )
        shape = (input_ids.shape[0], input_ids.shape[1] - 1)
        for name in FIELDS:
            value = getattr(outputs, name, None)
            if value is not None:
                setattr(outputs, name, unpack(value, packed.branches, shape))
        return outputs


def refuse_inexact(config: Any) -> None:
    """Raise ConfigError for architectures whose attention a packed row would change."""
    text = config.get_text_config()
    reasons = {
        "images in the prompt": text is not config,
        "sliding-window attention": bool(getattr(text, "sliding_window", None)) and getattr(text, "use_sliding_window", True),
        "a router loss over all tokens": hasattr(text, "output_router_logits"),
        "attention other than SDPA or eager": config._attn_implementation not in ("sdpa", "eager"),
    }
    found = [reason for reason, present in reasons.items() if present]
    if found:
        raise ConfigError("trainer.layout", "moment_tree", f"stock for this model, which has {' and '.join(found)}")


@dataclass(frozen=True)
class _Row:
    ids: list[int]
    positions: list[int]
    members: list[int]
    labels: list[int]
    branches: list[Branch]


def _lay(row: int, prompt: tuple[int, ...], completions: dict[tuple[int, ...], list[tuple[int, int]]]) -> _Row:
    """One prompt and its branches in a row. `members` is 0 for the prompt, 1, 2, ... for the branches, -1 for padding."""
    laid = _Row(list(prompt[:-1]), list(range(len(prompt) - 1)), [0] * (len(prompt) - 1), [IGNORED] * (len(prompt) - 1), [])
    for number, (completion, sides) in enumerate(completions.items(), start=1):
        laid.branches.append(Branch(row, len(laid.ids), completion, tuple(sides)))
        laid.ids.extend((prompt[-1], *completion[:-1]))
        laid.positions.extend(range(len(prompt) - 1, len(prompt) - 1 + len(completion)))
        laid.members.extend([number] * len(completion))
        laid.labels.extend(completion)
    return laid


def _mask(members: torch.Tensor) -> torch.Tensor:
    """members (rows, tokens) -> who sees whom (rows, 1, tokens, tokens): the prompt and one's own branch, never ahead."""
    tokens = members.shape[1]
    causal = torch.ones(tokens, tokens, dtype=torch.bool, device=members.device).tril()
    same = members[:, :, None] == members[:, None, :]
    prompt = (members == 0)[:, None, :]
    real = (members >= 0)[:, None, :]
    # Padding sees itself: a row of the mask without any token would make the attention undefined.
    return (causal & (same | prompt) & (real | same))[:, None]
