"""From arrays of a proof to the parameters of a network."""

import numpy as np
import torch

from headwise.build.certify.rounding import Arrays
from headwise.build.maps.relu import Network
from headwise.nets import ClassTokenNet, ClassTokenShape


def make_net(shape: ClassTokenShape, arrays: Arrays) -> ClassTokenNet:
    """A network in double precision; what `arrays` leaves out is zero."""
    params = {
        name: torch.from_numpy(np.ascontiguousarray(arrays[name], np.float64))
        if name in arrays
        else torch.zeros(size, dtype=torch.float64)
        for name, size in shape.parameter_shapes().items()
    }
    return ClassTokenNet(shape, params).requires_grad_(False)


def as_arrays(prefix: str, network: Network) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A network's weights under the names of an MLP's parameters, and its slack."""
    weights, slack = {}, {}
    for index, each in enumerate(network):
        weights[f"{prefix}.{index}.weight"] = each.weight
        weights[f"{prefix}.{index}.bias"] = each.bias
        slack[f"{prefix}.{index}"] = each.slack
    return weights, slack
