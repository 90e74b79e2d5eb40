"""Windows cut from a long array of token numbers."""

import numpy as np
import torch
from jaxtyping import Int, Integer
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor


def cut_windows(
    ids: Integer[np.ndarray, " tokens"], starts: Int[np.ndarray, " windows"], length: int
) -> Int[Tensor, "windows {length}+1"]:
    """Windows of length + 1 tokens, from each start on."""
    return torch.from_numpy(sliding_window_view(ids, length + 1)[starts].astype(np.int64))


def evenly_spaced(starts: Int[np.ndarray, " all"], count: int) -> Int[np.ndarray, " windows"]:
    """`count` of the starts, evenly spaced, or all (0)."""
    if 0 < count < len(starts):
        return starts[np.linspace(0, len(starts) - 1, count).round().astype(int)]
    return starts
