"""A model run on packed rows: for TRL in its pair layout, and for scoring. Same log-probs as whole sequences, a tenth of the tokens."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ad4edu_train.errors import ConfigError
from ad4edu_train.policy import tree_attention
from ad4edu_train.policy.tree_layout import IGNORED, Packed, Tree, lay
from ad4edu_train.policy.vision import IMAGE_KEYS

# Per-token outputs of TRL's head that its loss and metrics read.
FIELDS = ("log_probs", "entropy", "mean_logits", "is_top1", "log_sum_sq_probs")
Sides = list[tuple[int, int]]


class TreeForward:
    """Stands where TRL calls the model: takes its pair layout, runs one packed row, gives per-token outputs back in pair layout.

    The batch names the moment of each row (`moments`), since placeholder tokens are alike for all images; `pixel_values` and
    `image_grid_thw` then hold the images of each moment once, in the order of the moments. `tokens` counts those of the last call.
    """

    def __init__(self, model: Callable[..., Any], core: Any) -> None:
        self.model = model
        self.core = core
        self.tokens = 0

    def __call__(
        self,
        *,
        input_ids: torch.Tensor,
        labels: torch.Tensor,
        moments: torch.Tensor,
        attention_mask: torch.Tensor,
        **kwargs: Any,
    ) -> Any:
        trees, sides = trees_of(input_ids, labels, moments)
        images = {key: kwargs[key] for key in IMAGE_KEYS if key in kwargs}
        packed = lay(trees, positions_of(self.core, trees, images), input_ids.device)
        self.tokens = packed.tokens
        kwargs.pop("mm_token_type_ids", None)
        outputs = self.model(**model_inputs(packed), shift_labels=packed.shift_labels, **kwargs)
        shape = (input_ids.shape[0], input_ids.shape[1] - 1)
        for name in FIELDS:
            value = getattr(outputs, name, None)
            if value is not None:
                setattr(outputs, name, _to_pairs(value, packed, trees, sides, shape))
        return outputs


def trees_of(input_ids: torch.Tensor, labels: torch.Tensor, moments: torch.Tensor) -> tuple[list[Tree], list[list[Sides]]]:
    """TRL's rows (2 x pairs, tokens) -> trees, and for each branch of each the (row, prompt length) that it serves."""
    found: dict[int, dict[tuple[int, ...], Sides]] = {}
    prompts: dict[int, tuple[int, ...]] = {}
    for row, (ids, marks, moment) in enumerate(zip(input_ids.tolist(), labels.tolist(), moments.tolist(), strict=True)):
        length = next(index for index, mark in enumerate(marks) if mark != IGNORED)
        completion = tuple(mark for mark in marks[length:] if mark != IGNORED)
        prompts.setdefault(moment, tuple(ids[:length]))
        found.setdefault(moment, {}).setdefault(completion, []).append((row, length))
    order = sorted(found)
    trees = [Tree(prompts[moment], tuple(found[moment])) for moment in order]
    return trees, [list(found[moment].values()) for moment in order]


def positions_of(core: Any, trees: Sequence[Tree], images: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Positions of each prompt: (1, prompt) counted up, or (3, prompt) from the model's own rule where it has one for images."""
    rope = next((module for module in core.modules() if hasattr(module, "get_rope_index")), None)
    if rope is None or "image_grid_thw" not in images:
        return [torch.arange(len(tree.prompt))[None] for tree in trees]
    device = images["image_grid_thw"].device
    width = max(len(tree.prompt) for tree in trees)
    ids = torch.zeros(len(trees), width, dtype=torch.long, device=device)
    mask = torch.zeros_like(ids)
    for row, tree in enumerate(trees):
        ids[row, : len(tree.prompt)] = torch.tensor(tree.prompt, device=device)
        mask[row, : len(tree.prompt)] = 1
    types = (ids == core.config.image_token_id).long()
    places, _ = rope.get_rope_index(ids, mm_token_type_ids=types, image_grid_thw=images["image_grid_thw"], attention_mask=mask)
    return [places[:, row, : len(tree.prompt)] for row, tree in enumerate(trees)]


def model_inputs(packed: Packed) -> dict[str, Any]:
    """What a packed row is given to a model as. A mask that is already four-dimensional is passed through unread: attention reads
    the layout, and the model builds no mask of its own, least of all one guessed from positions that start again."""
    return {
        "input_ids": packed.input_ids,
        "position_ids": packed.position_ids,
        "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool, device=packed.input_ids.device),
        "moment_layout": packed.spans,
    }


def score_trees(model: Any, trees: Sequence[Tree], images: dict[str, torch.Tensor]) -> list[list[torch.Tensor]]:
    """Log-probs (tokens,) in float32 of every completion of every tree, by one forward of the model without TRL's head."""
    packed = lay(trees, positions_of(model, trees, images), model.device)
    wanted = (packed.shift_labels[0] != IGNORED).nonzero()[:, 0]
    logits = model(**model_inputs(packed), **images, use_cache=False, logits_to_keep=wanted).logits[0].float()
    ids = packed.shift_labels[0, wanted]
    values = logits.gather(1, ids[:, None])[:, 0] - logits.logsumexp(dim=1)
    pieces = iter(values.split([len(completion) for tree in trees for completion in tree.completions]))
    return [[next(pieces) for _ in tree.completions] for tree in trees]


def reasons_against(model: Any) -> list[str]:
    """Why a model's attention is not that of a packed row; empty where it is."""
    config, text = model.config, model.config.get_text_config()
    rope_of_images = any(hasattr(module, "get_rope_index") for module in model.modules())
    reasons = {
        "images by a rule that is not known here": text is not config and not rope_of_images,
        "sliding-window attention": bool(getattr(text, "sliding_window", None)) and getattr(text, "use_sliding_window", True),
        "a router loss over all tokens": hasattr(text, "output_router_logits"),
        "capped attention scores": bool(getattr(text, "attn_logit_softcapping", None)),
        "layers that are no attention": set(getattr(text, "layer_types", None) or ["full_attention"]) != {"full_attention"},
        "attention other than SDPA": text._attn_implementation not in ("sdpa", tree_attention.NAME),
    }
    return [reason for reason, present in reasons.items() if present]


def require(model: Any) -> None:
    """Raise ConfigError for architectures whose attention a packed row would change; `load_base` enabled all others."""
    found = reasons_against(model)
    if found:
        raise ConfigError("trainer.layout", "moment_tree", f"stock for this model, which has {' and '.join(found)}")


def _to_pairs(
    values: torch.Tensor, packed: Packed, trees: Sequence[Tree], sides: list[list[Sides]], shape: tuple[int, int]
) -> torch.Tensor:
    """Per-token values (1, tokens) of the packed row -> pair layout (2 x pairs, tokens - 1), zero outside the completions."""
    out = values.new_zeros(shape)
    for tree, starts, served in zip(trees, packed.starts, sides, strict=True):
        for completion, start, rows in zip(tree.completions, starts, served, strict=True):
            tokens = values[0, start : start + len(completion)]
            for row, length in rows:
                out[row, length - 1 : length - 1 + len(completion)] = tokens
    return out
