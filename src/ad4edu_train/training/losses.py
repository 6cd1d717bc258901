"""Pairwise losses under label noise, as what they add to TRL's sigmoid loss: pure functions of the reward margin."""

from typing import Literal

import torch

Method = Literal["none", "cdpo", "rdpo"]


def noise_weight(method: Method, noise: torch.Tensor) -> torch.Tensor:
    """Weight of the reward margin that turns the sigmoid loss into one for labels flipped with probability `noise` (pairs,).

    With h = beta x (log-ratio of chosen - of rejected) and L(h) = -log sigmoid(h), the loss of the flipped label is L(-h) = L(h) + h, so
    conservative DPO (Mitchell 2023, eq. 3), (1 - e) L(h) + e L(-h), is L(h) + e h, and robust DPO (Chowdhury et al. 2024, eq. 8),
    ((1 - e) L(h) - e L(-h)) / (1 - 2 e), which is unbiased for e < 1/2, is L(h) - e / (1 - 2 e) h.
    """
    if method == "cdpo":
        return noise
    if method == "rdpo":
        return -noise / (1 - 2 * noise)
    return torch.zeros_like(noise)


def noise_term(method: Method, noise: torch.Tensor, margins: torch.Tensor) -> torch.Tensor:
    """Mean of what label noise adds to the sigmoid loss; noise and margins (pairs,), margins in reward units."""
    return (noise_weight(method, noise) * margins).mean()
