"""Initial weights: a function of shape and seed, drawn by numpy so that they are equal everywhere.

Weights are uniform with variance 1/(3·inputs) (torch's own default for a linear layer; the query,
key and value maps use Xavier's bound instead, as torch's attention does). Biases are zero, the
class token is small and the readout's last layer is a tenth of its default. The last three are
not cosmetic: with torch's defaults most networks with too few heads stall at a poor plateau on
long sequences.
"""

from math import sqrt

import numpy as np
import torch
from torch import Tensor

from headwise.nets.shape import ClassTokenShape

CLASS_TOKEN_SCALE = 0.02
READOUT_SCALE = 0.1


def initial_params(shape: ClassTokenShape, seed: int) -> dict[str, Tensor]:
    """Parameters of one network, without the axis of members."""
    rng = np.random.default_rng([seed, 0x1217])
    last_readout = f"readout.{len(shape.readout.widths)}.weight"
    params = {}
    for name, size in shape.parameter_shapes().items():
        values = np.zeros(size, np.float32)
        if name == "class_token" or name == "positions":
            values = CLASS_TOKEN_SCALE * rng.standard_normal(size, np.float32)
        elif name.endswith("norm.weight"):
            values = np.ones(size, np.float32)
        elif name.endswith(".weight"):
            fan_in = size[1]
            projection = name.split(".")[-2] in ("query", "key", "value")
            bound = sqrt(6 / (4 * fan_in)) if projection else 1 / sqrt(fan_in)
            bound *= READOUT_SCALE if name == last_readout else 1
            values = rng.uniform(-bound, bound, size).astype(np.float32)
        params[name] = torch.from_numpy(values)
    return params
