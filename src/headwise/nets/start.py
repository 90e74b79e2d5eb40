"""How networks that read a sequence as a whole start."""

from math import sqrt

import numpy as np
import torch
from torch import Tensor

from headwise.nets.layers import ParameterShapes

_TABLE_SCALE = 0.02  # of the class token and the positions
_READOUT_SCALE = 0.1


def start_weights(shapes: ParameterShapes, readout_layers: int, seed: int) -> dict[str, Tensor]:
    """Fresh weights, drawn in the order of `shapes`; see `ClassTokenShape.initial_params`."""
    rng = np.random.default_rng([seed, 0x1217])
    last_readout = f"readout.{readout_layers}.weight"
    params = {}
    for name, size in shapes.items():
        values = np.zeros(size, np.float32)
        if name == "class_token" or name == "positions":
            values = _TABLE_SCALE * rng.standard_normal(size, np.float32)
        elif name.endswith("norm.weight"):
            values = np.ones(size, np.float32)
        elif name.endswith(".weight"):
            projection = name.split(".")[-2] in ("query", "key", "value")
            bound = sqrt(6 / (4 * size[1])) if projection else 1 / sqrt(size[1])
            bound *= _READOUT_SCALE if name == last_readout else 1
            values = rng.uniform(-bound, bound, size).astype(np.float32)
        params[name] = torch.from_numpy(values)
    return params
