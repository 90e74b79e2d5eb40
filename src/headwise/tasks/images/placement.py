"""Pictures in larger frames, cut into patches."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int, UInt8
from torch import Tensor


@lru_cache(maxsize=16)
def corners(count: int, room: int, seed: int, held_out: bool) -> Int[np.ndarray, "count 2"]:
    """Row and column of each picture's upper left corner, evenly over the `room` there is."""
    rng = np.random.default_rng([seed, int(held_out), 0x91C7])
    return rng.integers(0, room + 1, (count, 2))


def in_frame(
    pixels: UInt8[np.ndarray, "batch size size 3"], places: Int[np.ndarray, "batch 2"], frame: int
) -> UInt8[np.ndarray, "batch frame frame 3"]:
    """Each picture at its place; outside it, the colour of the nearest pixel of its edge.

    Pixel (y, x) of the frame is pixel (clamp(y − top), clamp(x − left)) of the picture.
    """
    size = pixels.shape[1]
    if frame == size:
        return pixels
    nearest = np.clip(np.arange(frame) - places[:, :, None], 0, size - 1)  # (batch, 2, frame)
    rows, columns = nearest[:, 0], nearest[:, 1]
    picture = np.arange(len(pixels))[:, None, None]
    return pixels[picture, rows[:, :, None], columns[:, None, :]]


def patches_of(
    framed: UInt8[Tensor, "batch frame frame 3"], patch: int
) -> Float[Tensor, "batch patches numbers"]:
    """Patches row by row; a patch's numbers colour by colour, row by row, from −1 to 1."""
    batch, frame = framed.shape[:2]
    side = frame // patch
    cut = framed.view(batch, side, patch, side, patch, 3).permute(0, 1, 3, 5, 2, 4)
    return cut.reshape(batch, side * side, 3 * patch * patch).float().mul_(2 / 255).sub_(1)
