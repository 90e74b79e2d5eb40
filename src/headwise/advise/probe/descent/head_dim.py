"""How many dimensions does a head need? Trained heads are cut, and trained on for a while.

Value: a head adds O (V x̄ + b) to the class token, x̄ the mean by its attention. The r directions in
which that varies most over the data (the eigenvectors of its covariance) replace O, and V and b
are projected on them; what varies less becomes a constant in the output's bias. The smallest r
whose error, after brief training, is that of the wide heads is the answer.

Query and key: the query is that of the class token, the same for all sequences. A score q·(K x)
is then a single linear form of x whatever the rank of K: one dimension is enough, exactly.
"""

from dataclasses import dataclass, replace

import torch

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.network import Params, held_out_error, train_on
from headwise.advise.probe.descent.removal import head_outputs
from headwise.advise.probe.descent.walk import TUNING_RATE, Descent
from headwise.advise.probe.samples.prepare import Prepared
from headwise.advise.probe.verdict import FLOOR
from headwise.nets import ClassTokenShape

TRIED = (1, 2, 4)
ENOUGH, TOO_FEW = 1.5, 3.0  # factors above the wide heads' error: as good, clearly worse
_SEEN = 1024
_OUT, _VALUE = "layers.0.out", "layers.0.value"


@dataclass(frozen=True)
class HeadDim:
    """The smallest dimensions that reach the error of wide heads; `interval` is the value's.

    Where a token asks instead of a class token, `query_key` may be more than 1, and the value
    dimension is None, not measured.
    """

    query_key: int
    value: int | None
    interval: tuple[int, int] | None
    errors: dict[int, float]  # by value dimension
    query_key_interval: tuple[int, int] = (1, 1)


def measure_head_dim(
    data: Prepared, descent: Descent, heads: int, steps: int, clock: Clock
) -> HeadDim | None:
    """Cut the heads of a wide descent; None where it has no such network or the time is over."""
    if heads not in descent.networks:
        return None
    shape, params = descent.networks[heads]
    wide = shape.layers[0].v_dim
    errors = {wide: descent.errors[heads]}
    clock.planned += len(TRIED) * steps
    for dim in TRIED:
        narrow, start = cut_values(shape, params, data, dim)
        seed = descent.plan.seed
        trained = train_on(data, narrow, start, seed, 0, steps, TUNING_RATE, clock)
        if trained is None:
            return None
        errors[dim] = held_out_error(data, narrow, trained[0])
        if _within(ENOUGH, errors[dim], errors[wide]):
            break
    good = [dim for dim in errors if _within(ENOUGH, errors[dim], errors[wide])]
    poor = [dim for dim in errors if not _within(TOO_FEW, errors[dim], errors[wide])]
    value = min(good)
    least = max((dim for dim in poor if dim < value), default=0) + 1
    return HeadDim(1, value, (least, value), dict(sorted(errors.items())))


def cut_values(
    shape: ClassTokenShape, params: Params, data: Prepared, dim: int
) -> tuple[ClassTokenShape, Params]:
    """The network whose heads hand on `dim` dimensions: those that vary most."""
    layer = shape.layers[0]
    outputs = head_outputs(shape, params, data.train.inputs[:_SEEN])
    maps = params[f"{_OUT}.weight"].double().unflatten(1, (layer.heads, layer.v_dim))
    weight = params[f"{_VALUE}.weight"].double().unflatten(0, (layer.heads, layer.v_dim))
    bias = params[f"{_VALUE}.bias"].double().unflatten(0, (layer.heads, layer.v_dim))
    out_bias = params[f"{_OUT}.bias"].double().clone()
    kept, weights, biases = [], [], []
    for head in range(layer.heads):
        given = outputs[:, head] @ maps[:, head].mT  # what the head adds to the class token
        mean = given.mean(0)
        basis = torch.linalg.eigh(torch.cov(given.mT)).eigenvectors[:, -dim:]
        out_bias += mean - basis @ (basis.mT @ mean)
        kept.append(basis)
        weights.append(basis.mT @ maps[:, head] @ weight[head])
        biases.append(basis.mT @ maps[:, head] @ bias[head])
    narrow = dict(params)
    narrow[f"{_OUT}.weight"] = torch.cat(kept, 1).float().contiguous()
    narrow[f"{_OUT}.bias"] = out_bias.float()
    narrow[f"{_VALUE}.weight"] = torch.cat(weights).float().contiguous()
    narrow[f"{_VALUE}.bias"] = torch.cat(biases).float().contiguous()
    return replace(shape, layers=(replace(layer, v_dim=dim),)), narrow


def _within(factor: float, error: float, wide: float) -> bool:
    return error + FLOOR <= factor * (wide + FLOOR)
