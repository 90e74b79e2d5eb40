"""The float term: an exact evaluation of the same weights never differs by more."""

import numpy as np
import pytest
import torch

from headwise import build
from headwise.nets import ClassTokenNet
from headwise.tasks import Bowl, Function, Product, Retrieval, sum_of_maxima

SUBSETS = ((0, 1, 2), (3, 4, 5))
TASKS = [
    (sum_of_maxima(6), 1e-6),
    (Retrieval(features=Bowl.random(2, 2), length=6, outer=Product(), inputs="uniform"), 1e-3),
    (
        Retrieval(
            features=Function(
                function=lambda x: torch.stack([torch.sin(3 * x.sum(-1)), x.prod(-1)], -1),
                count=2,
                token_dim=3,
                lipschitz=27**0.5,
                curvature=27.0,
            ),
            length=6,
            subsets=SUBSETS,
            inputs="uniform",
        ),
        0.5,
    ),
]


def in_extended_precision(net: ClassTokenNet, inputs: np.ndarray) -> np.ndarray:
    """The network, layer by layer, unfolded, in 64-bit mantissas."""
    shape = net.shape
    p = {
        name: value.detach().numpy().astype(np.longdouble) for name, value in net.named_parameters()
    }

    def mlp(rows: np.ndarray, name: str, hidden: int) -> np.ndarray:
        for index in range(hidden + 1):
            rows = rows @ p[f"{name}.{index}.weight"].T + p[f"{name}.{index}.bias"]
            rows = np.maximum(rows, 0) if index < hidden else rows
        return rows

    tokens = mlp(inputs.astype(np.longdouble), "embed", len(shape.embed.widths))
    tokens = tokens + p["positions"] if shape.positions else tokens
    heads = shape.layers[0].heads
    query = (p["layers.0.query.weight"] @ p["class_token"]).reshape(heads, 2)
    keys = (tokens @ p["layers.0.key.weight"].T).reshape(*tokens.shape[:2], heads, 2)
    scores = (keys * query).sum(-1)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights = weights / weights.sum(1, keepdims=True)
    values = (tokens @ p["layers.0.value.weight"].T).reshape(*tokens.shape[:2], heads, 2)
    mixed = (weights[..., None] * values).sum(1).reshape(len(inputs), -1)
    return mlp(mixed @ p["layers.0.out.weight"].T, "readout", len(shape.readout.widths))[:, 0]


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no extended precision here")
@pytest.mark.parametrize(("task", "error"), TASKS)
def test_exact_arithmetic_stays_within_the_float_term(task: Retrieval, error: float) -> None:
    built = build.retrieval(task, error)
    inputs = task.sample(300, seed=2)[0].double()
    exact = in_extended_precision(built.net, inputs.numpy())
    difference = np.abs(exact - built.net(inputs).squeeze(1).numpy()).max()
    bound = built.certificate.term("float arithmetic").value
    assert 0 < difference <= bound
    assert bound <= 1e-6 * error * 100
