"""A packed row: every prompt once, every distinct AD of its moment a branch of it (docs/method.md, Moment tree).

A prompt lies there without its last token. Each branch begins with that last token, so that every position predicts exactly one
token. Positions go on from the prompt in every branch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

IGNORED = -100


@dataclass(frozen=True)
class Tree:
    """A rendered prompt and the distinct completions behind it."""

    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Span:
    """Where a tree lies in the row: `start`, then `prompt` tokens, then the branches. Only attention reads it.

    `index` (branches, longest branch) holds positions in the row; `valid`, the same shape, is False where a branch is shorter.
    """

    start: int
    prompt: int
    index: torch.Tensor
    valid: torch.Tensor


@dataclass(frozen=True)
class Packed:
    """Model inputs of one packed row.

    input_ids (1, tokens); position_ids (1, tokens), or (3, 1, tokens) for rotary positions in time, height and width; shift_labels
    (1, tokens), the token that each position predicts; starts[tree][branch] is where a completion's first prediction lies.
    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    shift_labels: torch.Tensor
    spans: tuple[Span, ...]
    starts: tuple[tuple[int, ...], ...]

    @property
    def tokens(self) -> int:
        return self.input_ids.shape[1]


def tokens_of(tree: Tree) -> int:
    """Tokens that a tree takes in a packed row."""
    return len(tree.prompt) - 1 + sum(map(len, tree.completions))


def lay(trees: Sequence[Tree], positions: Sequence[torch.Tensor], device: torch.device) -> Packed:
    """Pack trees into one row. positions[tree] is (1, prompt) for plain positions, (3, prompt) for those of images."""
    ids: list[int] = []
    labels: list[int] = []
    places: list[torch.Tensor] = []
    spans, starts = [], []
    for tree, place in zip(trees, positions, strict=True):
        start, prompt = len(ids), len(tree.prompt) - 1
        ids.extend(tree.prompt[:-1])
        labels.extend([IGNORED] * prompt)
        places.append(place[:, :-1])
        following = int(place.max()) + 1
        begins = []
        for completion in tree.completions:
            begins.append(len(ids))
            ids.extend((tree.prompt[-1], *completion[:-1]))
            labels.extend(completion)
            after = torch.arange(following, following + len(completion) - 1, device=place.device).expand(place.shape[0], -1)
            places.append(torch.cat([place[:, -1:], after], dim=1))
        spans.append(_span(start, prompt, begins, [len(completion) for completion in tree.completions], device))
        starts.append(tuple(begins))
    position_ids = torch.cat(places, dim=1).to(device)
    return Packed(
        input_ids=torch.tensor([ids], device=device),
        position_ids=position_ids if position_ids.shape[0] == 1 else position_ids[:, None],
        shift_labels=torch.tensor([labels], device=device),
        spans=tuple(spans),
        starts=tuple(starts),
    )


def _span(start: int, prompt: int, begins: list[int], lengths: list[int], device: torch.device) -> Span:
    steps = torch.arange(max(lengths), device=device)
    valid = steps[None] < torch.tensor(lengths, device=device)[:, None]
    index = torch.where(valid, torch.tensor(begins, device=device)[:, None] + steps[None], begins[0])
    return Span(start, prompt, index, valid)
