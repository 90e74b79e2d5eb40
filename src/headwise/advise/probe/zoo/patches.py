"""Images as patches: a bright blob on noise, cut into squares, a token each."""

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.zoo.task import Tokens, Value, ZooTask, right, some_noise


def _patches(side: int, grid: int) -> Tokens:
    """Images of side·grid pixels with a bright and a dark blob, as grid² tokens of side² pixels."""

    def draw(rng: Generator, count: int) -> np.ndarray:
        size = side * grid
        rows, columns = np.indices((size, size))
        image = 0.3 * rng.standard_normal((count, size, size))
        for sign in (1.0, -1.0):
            centre = rng.uniform(0, size, (count, 2, 1, 1))
            far = (rows - centre[:, 0]) ** 2 + (columns - centre[:, 1]) ** 2
            image += sign * rng.uniform(0.5, 2, (count, 1, 1)) * np.exp(-far / side**2)
        cut = image.reshape(count, grid, side, grid, side).transpose(0, 1, 3, 2, 4)
        return cut.reshape(count, grid * grid, side * side)

    return draw


def _of_images(rng: Generator, about: str, heads: int, value: Value, labels: bool) -> ZooTask:
    side, grid = int(rng.integers(2, 4)), int(rng.integers(3, 6))
    words = f"{about}, {grid}×{grid} patches of {side}×{side}"
    noise = 0.0 if labels else some_noise(rng)
    return ZooTask(words, right(heads), _patches(side, grid), value, noise, labels)


def brightest_patch(rng: Generator) -> ZooTask:
    """Brightness of the brightest patch: a choice by the mean pixel, one head."""
    return _of_images(rng, "brightest patch", 1, lambda x: x.mean(2).amax(1), False)


def contrast_of_patches(rng: Generator) -> ZooTask:
    """Brightest minus darkest patch: two extrema, two heads."""
    return _of_images(
        rng, "contrast of patches", 2, lambda x: x.mean(2).amax(1) - x.mean(2).amin(1), False
    )


def place_of_brightest(rng: Generator) -> ZooTask:
    """Which patch is the brightest, a label: a choice whose value is the position, one head."""
    return _of_images(rng, "place of the brightest", 1, lambda x: x.mean(2).argmax(1), True)


def energy_of_images(rng: Generator) -> ZooTask:
    """Mean square of all pixels: an average, one head."""

    def value(x: Tensor) -> Tensor:
        return torch.log(x.square().mean((1, 2)))

    return _of_images(rng, "energy of the image", 1, value, False)


CLASSES = (brightest_patch, contrast_of_patches, place_of_brightest, energy_of_images)
