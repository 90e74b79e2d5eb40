"""Rotary positions: queries and keys are turned by angles that grow with the position."""

from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

_BASE = 10_000.0  # of the rotations' wavelengths


def rotation(
    length: int, rank: int, device: torch.device
) -> tuple[Float[Tensor, "length half"], Float[Tensor, "length half"]]:
    """Cosines and sines by which position t turns pair i: the angle t·10000^(−2i/rank)."""
    return _rotation(length, rank, str(device))


def rotate(
    vectors: Float[Tensor, "... length rank"], turn: tuple[Tensor, Tensor]
) -> Float[Tensor, "... length rank"]:
    """RoPE: coordinate i and coordinate i + rank/2 make a pair, as in the hub's Llama."""
    cosine, sine = turn
    first, second = vectors.chunk(2, -1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


@lru_cache(maxsize=64)
def _rotation(length: int, rank: int, device: str) -> tuple[Tensor, Tensor]:
    speeds = _BASE ** (-np.arange(0, rank, 2) / rank)
    angles = np.arange(length)[:, None] * speeds
    cosine, sine = (
        torch.from_numpy(table.astype(np.float32)) for table in (np.cos(angles), np.sin(angles))
    )
    return cosine.to(device), sine.to(device)
