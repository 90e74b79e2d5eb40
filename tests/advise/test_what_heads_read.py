"""What trained heads look at, and what is lost without one of them."""

import pytest
import torch

from headwise.advise.probe.counting.surrogate import fixed_readers, read_positions, two_choices
from headwise.advise.probe.descent.removal import remove_head, with_heads
from headwise.nets import AttentionShape, ClassTokenNet, ClassTokenShape, MLPShape
from headwise.tasks import sum_of_maxima
from headwise.training.samples.engine import Dataset


def test_heads_are_alike_that_choose_by_one_feature() -> None:
    shape, params = _two_heads()
    inputs = torch.randn(50, 12, 2, generator=torch.Generator().manual_seed(0))
    key = params["layers.0.key.weight"]
    for second, lowest, highest in (([9.0, 0.0], 0.9, 1.0), ([0.0, 9.0], -0.3, 0.3)):
        key[0], key[1] = torch.tensor([3.0, 0.0]), torch.tensor(second)
        assert lowest <= two_choices(shape, params, inputs.abs())[0] <= highest
    key[1] = torch.tensor([1e-3, 0.0])  # an average, whose scores have the same order
    key[0] *= 10
    alike, breadth = two_choices(shape, params, inputs.abs())
    assert alike == 0.0
    assert breadth < 0.3


def test_a_position_is_read_by_whichever_heads() -> None:
    """Values that count at one position only: no head looks there, and both read it."""
    shape, params = _two_heads()
    params["layers.0.value.weight"][:] = torch.tensor([1.0, 0.0])
    params["layers.0.out.weight"][:] = 1.0
    params["readout.0.weight"][:] = 1.0
    params["readout.1.weight"][:] = 1.0
    inputs = torch.rand(64, 8, 2, generator=torch.Generator().manual_seed(0))
    assert read_positions(shape, params, inputs) == 0
    inputs[:, 1:, 0] *= 0.01
    assert fixed_readers(shape, params, inputs) == 0
    assert read_positions(shape, params, inputs) == 1


def test_a_position_that_stands_out_by_chance_is_not_read() -> None:
    """One of 64 sequences decides what is seen of them: in others that position is as all are."""
    shape, params = _two_heads()
    params["layers.0.value.weight"][:] = torch.tensor([1.0, 0.0])
    params["layers.0.out.weight"][:] = 1.0
    params["readout.0.weight"][:] = params["readout.1.weight"][:] = 1.0
    inputs = torch.rand(256, 8, 2, generator=torch.Generator().manual_seed(0))
    inputs[10, 5, 0] = 100.0
    assert read_positions(shape, params, inputs[:64]) == 1
    assert read_positions(shape, params, inputs) == 0


def _two_heads() -> tuple[ClassTokenShape, dict[str, torch.Tensor]]:
    """Two heads with one query–key dimension, which so far average."""
    shape = ClassTokenShape(
        token_dim=2,
        embed_dim=2,
        layers=(AttentionShape(heads=2, qk_dim=1, v_dim=1),),
        embed=MLPShape(widths=(2,), activation="relu"),
        readout=MLPShape(widths=(2,), activation="gelu"),
    )
    params = {name: torch.zeros(size) for name, size in shape.parameter_shapes().items()}
    params["embed.0.weight"] = params["embed.1.weight"] = torch.eye(2)
    params["layers.0.query.bias"] += 1
    return shape, params


def test_a_copied_head_is_removed_without_loss() -> None:
    shape = ClassTokenShape.standard(token_dim=2, heads=3, head_dim=2, width=8)
    net = ClassTokenNet(shape, seed=4)
    params = {name: value.detach().clone() for name, value in net.named_parameters()}
    for part in ("query", "key", "value"):
        for kind in ("weight", "bias"):
            by_head = params[f"layers.0.{part}.{kind}"].unflatten(0, (3, 2))
            by_head[2] = by_head[0]
    inputs, _ = sum_of_maxima(8, 1, token_dim=2, seed=3).sample(200, seed=1)
    with torch.no_grad():
        answers = ClassTokenNet(shape, params)(inputs)
    removal = remove_head(shape, params, Dataset(inputs, answers + 0.1), "mse")
    assert removal.shape == with_heads(shape, 2)
    assert removal.cost == pytest.approx(1, abs=1e-3)
    with torch.no_grad():
        fewer = ClassTokenNet(removal.shape, removal.params)(inputs)
    torch.testing.assert_close(fewer, answers, rtol=1e-3, atol=1e-3)


def test_a_head_that_reads_one_position_is_told_from_one_that_averages() -> None:
    shape, params = _two_heads()
    params["layers.0.key.weight"][0, 1] = 20.0  # the first head looks at the mark
    inputs = torch.rand(50, 6, 2, generator=torch.Generator().manual_seed(0))
    inputs[..., 1] = 0
    inputs[:, 2, 1] = 1  # always at the same place
    assert fixed_readers(shape, params, inputs) == 1
    for row, place in enumerate(torch.arange(50) % 6):
        inputs[row, :, 1] = 0
        inputs[row, place, 1] = 1
    assert fixed_readers(shape, params, inputs) == 0
