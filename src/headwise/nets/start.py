"""How networks that read a sequence as a whole start."""

from math import sqrt
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from headwise.nets.layers import ParameterShapes

Start = Literal["small", "torch"]

_SCALES = {"small": (0.02, 0.1), "torch": (1.0, 1.0)}
"""Of the class token and the positions, and of the readout's last layer."""


def start_weights(
    shapes: ParameterShapes, readout_layers: int, seed: int, start: Start = "small"
) -> dict[str, Tensor]:
    """Fresh weights, drawn in the order of `shapes`; see `ClassTokenShape.initial_params`."""
    rng = np.random.default_rng([seed, 0x1217])
    last_readout = f"readout.{readout_layers}.weight"
    table_scale, readout_scale = _SCALES[start]
    params = {}
    for name, size in shapes.items():
        values = np.zeros(size, np.float32)
        if name == "class_token" or name == "positions":
            values = table_scale * rng.standard_normal(size, np.float32)
        elif name.endswith("norm.weight"):
            values = np.ones(size, np.float32)
        elif name.endswith(".weight"):
            bound = sqrt(6 / (4 * size[1])) if _projects(name) else 1 / sqrt(size[1])
            bound *= readout_scale if name == last_readout else 1
            values = rng.uniform(-bound, bound, size).astype(np.float32)
        elif start == "torch" and name.startswith(("embed.", "readout.", "between.")):
            bound = 1 / sqrt(shapes[name.replace(".bias", ".weight")][-1])
            values = rng.uniform(-bound, bound, size).astype(np.float32)
        params[name] = torch.from_numpy(values)
    return params


def _projects(name: str) -> bool:
    """Is it a query, key or value map, which starts with Xavier's bound?"""
    return name.split(".")[-2] in ("query", "key", "value")
