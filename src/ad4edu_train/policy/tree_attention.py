"""Attention over a packed row: each prompt causally, then its branches as one batch that sees the prompt and itself.

Set once on the decoder for the life of a model. The layout comes with each forward as the keyword `moment_layout`, and in no other way:
gradient checkpointing runs a forward again within the backward pass, long after a global would hold another batch's layout. Without
the keyword this is transformers' SDPA attention. No mask is as large as the row squared, and memory is linear in the row's tokens plus
branches x prompt for the repeated keys and values.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from ad4edu_train.policy.tree_layout import Span

NAME = "moment_tree"


def tree_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    moment_layout: Sequence[Span] | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """query (1, heads, tokens, dim), key and value (1, key heads, tokens, dim) -> (1, tokens, heads, dim), None."""
    from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

    if moment_layout is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs)
    # Repeated by hand: with a mask, grouped heads fall back to the kernel that stores every score.
    groups = query.shape[1] // key.shape[1]
    key, value = repeat_kv(key, groups), repeat_kv(value, groups)
    pieces = []
    for span in moment_layout:
        prompt = slice(span.start, span.start + span.prompt)
        queries, keys, values = (tensor[:, :, prompt] for tensor in (query, key, value))
        pieces.append(scaled_dot_product_attention(queries, keys, values, is_causal=True, scale=scaling))
        pieces.append(_branches(query, key, value, span, scaling))
    return torch.cat(pieces, dim=2).transpose(1, 2).contiguous(), None


def enable(model: Any) -> None:
    """Let the decoder of a model run packed rows; everything else of it, a vision tower too, keeps its attention."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, tree_attention)
    # A name without a mask function of its own gets no mask at all, and padding would be attended to.
    AttentionMaskInterface.register(NAME, sdpa_mask)
    decoder = model.get_decoder()
    decoder.config._attn_implementation = NAME


def enabled(model: Any) -> bool:
    return getattr(model.config.get_text_config(), "_attn_implementation", None) == NAME


def _branches(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, span: Span, scaling: float | None) -> torch.Tensor:
    """The branches of one span -> (1, heads, their tokens, dim), in the order in which they lie."""
    branches, length = span.index.shape

    def own(tensor: torch.Tensor) -> torch.Tensor:
        return tensor[0][:, span.index].transpose(0, 1)

    def behind_prompt(tensor: torch.Tensor) -> torch.Tensor:
        prompt = tensor[:, :, span.start : span.start + span.prompt].expand(branches, -1, -1, -1)
        return torch.cat([prompt, own(tensor)], dim=2)

    # The padding of short branches comes last, so that no token sees it; what it sees itself is left out below.
    mask = torch.ones(length, span.prompt + length, dtype=torch.bool, device=query.device).tril(span.prompt)
    out = scaled_dot_product_attention(own(query), behind_prompt(key), behind_prompt(value), attn_mask=mask, scale=scaling)
    return out.transpose(0, 1)[:, span.valid][None]
