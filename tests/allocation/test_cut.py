"""Cutting a decoder's layer: exact at full size, optimal below it, refused where it cannot be."""

import numpy as np
import pytest
import torch

from headwise.allocation import Heads, with_layer
from headwise.allocation.cut import balanced
from headwise.core.errors import InputError
from headwise.nets import AttentionShape, DecoderShape

SHAPE = DecoderShape(
    vocabulary=17,
    width=24,
    layers=(
        AttentionShape(heads=3, qk_dim=6, v_dim=4),
        AttentionShape(heads=2, qk_dim=8, v_dim=8),
    ),
    ffn=32,
    length=12,
)


def outputs(shape: DecoderShape, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, 17, (1, 5, 12)))
    return shape.forward({name: each[None] for name, each in weights.items()}, tokens)


def inputs(index: int) -> torch.Tensor:
    weights = {name: each[None] for name, each in SHAPE.initial_params(0).items()}
    tokens = torch.from_numpy(np.random.default_rng(1).integers(0, 17, (1, 40, 12)))
    return SHAPE.layer_inputs(weights, tokens)[index].flatten(0, 2)


@pytest.mark.parametrize("index", [0, 1])
def test_at_full_size_nothing_changes(index: int) -> None:
    weights = SHAPE.initial_params(0)
    layer = SHAPE.layers[index]
    heads = Heads.of(weights, index, layer)
    before = outputs(SHAPE, weights)
    for same in (heads, heads.narrowed(inputs(index), layer.qk_dim, layer.v_dim)):
        shape, changed = with_layer(SHAPE, weights, index, same)
        assert shape == SHAPE
        torch.testing.assert_close(outputs(shape, changed), before, rtol=1e-4, atol=1e-5)


def test_a_narrowed_or_thinned_layer_has_its_new_size_and_runs() -> None:
    weights = SHAPE.initial_params(0)
    heads = Heads.of(weights, 0, SHAPE.layers[0])
    shape, changed = with_layer(SHAPE, weights, 0, heads.narrowed(inputs(0), 2, 3))
    assert shape.layers[0] == AttentionShape(heads=3, qk_dim=2, v_dim=3)
    assert {n: tuple(t.shape) for n, t in changed.items()} == shape.parameter_shapes()
    assert outputs(shape, changed).isfinite().all()
    shape, changed = with_layer(SHAPE, weights, 0, heads.only([2, 0]))
    assert shape.layers[0].heads == 2
    silent = dict(weights)
    silent["layers.0.out.weight"] = weights["layers.0.out.weight"].clone()
    silent["layers.0.out.weight"][:, 4:8] = 0  # head 1
    torch.testing.assert_close(
        outputs(shape, changed), outputs(SHAPE, silent), rtol=1e-4, atol=1e-5
    )


def test_no_other_pair_of_maps_comes_nearer_on_average() -> None:
    rng = np.random.default_rng(0)
    d, width, rank = 6, 9, 3
    left, right = (torch.from_numpy(rng.standard_normal((1, d, width))) for _ in range(2))
    roots = [torch.from_numpy(rng.standard_normal((width, width))) for _ in range(2)]
    moments = [root @ root.T for root in roots]

    def error(a: torch.Tensor, b: torch.Tensor) -> float:
        rest = left[0].T @ right[0] - a.T @ b
        return float(torch.trace(moments[0] @ rest @ moments[1] @ rest.T))

    a, b = balanced(left, moments[0], right, moments[1], rank)
    best = error(a[0], b[0])
    # Eckart–Young, by another road: singular values of the whitened product.
    values = torch.linalg.svdvals(roots[0].T @ left[0].T @ right[0] @ roots[1])
    assert best == pytest.approx(float(values[rank:].square().sum()), rel=1e-5)
    for _ in range(50):
        noise = [0.05 * torch.from_numpy(rng.standard_normal((rank, width))) for _ in range(2)]
        assert error(a[0] + noise[0], b[0] + noise[1]) >= best


def test_what_stands_between_the_projections_is_refused() -> None:
    import dataclasses

    for change in ({"positions": "rope"}, {"qk_norm": True}):
        shape = dataclasses.replace(SHAPE, **change)
        weights = shape.initial_params(0)
        with pytest.raises(InputError, match="RoPE and QK-norm stand between"):
            with_layer(shape, weights, 0, Heads.of(weights, 0, shape.layers[0]))
