"""Rotary positions: queries and keys are turned by angles that grow with the position."""

from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

_BASE = 10_000.0  # of the rotations' wavelengths


def rotation(length: int, rank: int, device: torch.device) -> Float[Tensor, "2 length half"]:
    """Cosines and sines by which position t turns pair i: the angle t·10000^(−2i/rank)."""
    return _rotation(length, rank, str(device))


def rotate(
    vectors: Float[Tensor, "... length rank"], turn: Float[Tensor, "2 length half"]
) -> Float[Tensor, "... length rank"]:
    """RoPE: coordinate i and coordinate i + rank/2 make a pair, as in the hub's Llama."""
    cosine, sine = turn
    first, second = vectors.chunk(2, -1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


@lru_cache(maxsize=64)
def _rotation(length: int, rank: int, device: str) -> Tensor:
    speeds = _BASE ** (-np.arange(0, rank, 2) / rank)
    angles = np.arange(length)[:, None] * speeds
    tables = np.stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    return torch.from_numpy(tables).to(device)
