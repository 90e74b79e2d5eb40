"""Sub-layers written out: gradients against torch's own of float64, members by themselves."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from headwise.nets import AttentionShape, DecoderShape, EncoderShape, compiled
from headwise.nets import decoder as decoder_room
from headwise.nets import encoder as encoder_room

Shape = EncoderShape | DecoderShape

LAYERS = AttentionShape(heads=2, qk_dim=4, v_dim=8), AttentionShape(heads=4, qk_dim=4, v_dim=16)
DECODER = DecoderShape(
    vocabulary=0, token_dim=5, outputs=2, width=32, layers=LAYERS, ffn=48, length=9
)

SHAPES = {
    "length": EncoderShape.paper(token_dim=16, rank=4, modules=2, layers=2, ffn=32),
    "odd width": EncoderShape.paper(token_dim=9, rank=3, layers=1, ffn=7, outputs=4),
    "norm first": EncoderShape.plain(
        token_dim=5, outputs=2, width=32, heads=4, layers=2, ffn=64, keys="earlier", positions=9
    ),
    "norm last": EncoderShape.plain(
        token_dim=5, outputs=3, width=24, heads=4, layers=2, ffn=20, keys="others", norm_first=False
    ),
    "one output": EncoderShape.plain(
        token_dim=5, outputs=1, width=32, heads=4, layers=1, ffn=48, keys="earlier", positions=9
    ),
    "one output, norm last": EncoderShape.plain(
        token_dim=5, outputs=1, width=16, heads=2, layers=1, ffn=32, norm_first=False
    ),
    "one output, odd width": EncoderShape.plain(
        token_dim=5, outputs=1, width=21, heads=3, layers=1, ffn=10
    ),
    "decoder": DECODER,
    "decoder, rotated": replace(DECODER, positions="rope", qk_norm=True),
    "decoder of attention alone": replace(DECODER, ffn=0),
    "decoder of grouped heads": replace(
        DECODER, attention="grouped:2", layers=(AttentionShape(heads=4, qk_dim=4, v_dim=4),)
    ),
}


def stacked(shape: Shape, members: int) -> dict[str, Tensor]:
    """Weights none of which is zero."""
    rng = np.random.default_rng(3)
    return {
        name: torch.from_numpy(rng.normal(0.1, 0.4, (members, *size)).astype(np.float32))
        for name, size in shape.parameter_shapes().items()
    }


def inputs_of(shape: Shape, members: int) -> Tensor:
    rng = np.random.default_rng(4)
    return torch.from_numpy(rng.normal(size=(members, 16, 9, shape.token_dim)).astype(np.float32))


def outputs_and_gradients(shape: Shape, params: dict[str, Tensor], inputs: Tensor) -> list[Tensor]:
    """Outputs, and the gradients of the inputs and of every parameter."""
    leaves = {name: value.detach().clone().requires_grad_() for name, value in params.items()}
    inputs = inputs.detach().clone().requires_grad_()
    outputs = shape.forward(leaves, inputs)
    weights = torch.sin(torch.arange(outputs[0].numel(), dtype=outputs.dtype)).view_as(outputs[0])
    asked = [inputs, *leaves.values()]
    return [outputs.detach(), *torch.autograd.grad((outputs * weights).sum(), asked)]


@pytest.mark.parametrize("name", SHAPES)
def test_outputs_and_gradients_are_those_of_float64(name: str) -> None:
    shape = SHAPES[name]
    params, inputs = stacked(shape, 3), inputs_of(shape, 3)
    doubled = {key: value.double() for key, value in params.items()}  # torch computes these
    exact = outputs_and_gradients(shape, doubled, inputs.double())
    for ours, theirs in zip(outputs_and_gradients(shape, params, inputs), exact, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).abs().max() <= 2e-5 * theirs.abs().max()


@pytest.mark.parametrize("name", SHAPES)
def test_a_member_is_computed_as_if_alone(name: str) -> None:
    shape = SHAPES[name]
    if shape.width % 16:
        pytest.skip("members of such sizes are not stacked")
    params, inputs = stacked(shape, 4), inputs_of(shape, 4)
    together = outputs_and_gradients(shape, params, inputs)
    for member in range(4):
        mine = {key: value[member : member + 1] for key, value in params.items()}
        alone = outputs_and_gradients(shape, mine, inputs[member : member + 1])
        for one, all_of_them in zip(alone, together, strict=True):
            assert torch.equal(one[0], all_of_them[member])


def test_a_number_that_is_none_stays_none() -> None:
    shape = SHAPES["length"]
    inputs = inputs_of(shape, 2)
    inputs[1, 0, 0, 0] = torch.nan
    outputs = outputs_and_gradients(shape, stacked(shape, 2), inputs)[0]
    assert outputs[1, 0].isnan().all()
    assert outputs[0].isfinite().all()
    assert outputs[1, 1:].isfinite().all()


@pytest.mark.parametrize("name", SHAPES)
def test_without_the_compiled_code_torch_computes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = SHAPES[name]
    params, inputs = stacked(shape, 2), inputs_of(shape, 2)
    ours = outputs_and_gradients(shape, params, inputs)
    for module in (encoder_room, decoder_room, compiled):
        monkeypatch.setattr(module, "compiled_for", lambda values: None)
    for one, other in zip(ours, outputs_and_gradients(shape, params, inputs), strict=True):
        torch.testing.assert_close(one, other, atol=2e-4, rtol=2e-4)
