"""What lies between two attention layers of the class-token network, against a loop by hand."""

from dataclasses import replace

import pytest
import torch

from headwise.core.errors import InputError
from headwise.core.spec import canonical_json
from headwise.nets import ClassTokenNet, ClassTokenShape

PLAIN = ClassTokenShape.standard(token_dim=3, heads=2, head_dim=4, width=6, layers=2)
BLOCKS = [
    {},
    {"residual": True},
    {"between": 5},
    {"residual": True, "between": 5},
    {"residual": True, "between": 5, "class_token_waits": True},
]


def by_hand(net: ClassTokenNet, inputs: torch.Tensor) -> torch.Tensor:
    """One sequence at a time, torch's own attention, nothing stacked."""
    shape, params = net.shape, {k: v[0] for k, v in net.stacked_parameters().items()}

    def linear(name: str, rows: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(rows, params[f"{name}.weight"], params[f"{name}.bias"])

    def attention(name: str, rows: torch.Tensor) -> torch.Tensor:
        heads = [
            torch.nn.functional.scaled_dot_product_attention(query, key, value)
            for query, key, value in zip(
                *(
                    linear(f"{name}.{part}", rows).split(4, -1)
                    for part in ("query", "key", "value")
                ),
                strict=True,
            )
        ]
        mixed = linear(f"{name}.out", torch.cat(heads, -1))
        return rows + mixed if shape.residual else mixed

    outputs = []
    for sequence in inputs:
        tokens = linear("embed.1", torch.relu(linear("embed.0", sequence)))
        start = torch.cat([tokens, params["class_token"][None]])
        stream = attention("layers.0", start)
        if shape.between:
            changed = linear("between.0.1", torch.relu(linear("between.0.0", stream)))
            stream = stream + changed if shape.residual else changed
        if shape.class_token_waits:
            stream = torch.cat([stream[:-1], start[-1:]])
        last = attention("layers.1", stream)[-1]
        hidden = torch.nn.functional.gelu(linear("readout.0", last))
        outputs.append(linear("readout.1", hidden))
    return torch.stack(outputs)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_between_layers_is_what_it_says(block: dict[str, object]) -> None:
    shape = replace(PLAIN, start="torch", **block)  # type: ignore[arg-type]
    net = ClassTokenNet(shape, shape.initial_params(3))
    inputs = torch.randn(4, 7, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(net(inputs), by_hand(net, inputs), rtol=1e-5, atol=1e-6)


def test_fields_that_were_added_leave_older_specifications_as_they_were() -> None:
    text = canonical_json(PLAIN)
    assert "between" not in text
    assert "start" not in text
    assert '"between":5' in canonical_json(replace(PLAIN, between=5))


@pytest.mark.parametrize("block", [{"between": 5}, {"class_token_waits": True}])
def test_one_layer_has_nothing_between(block: dict[str, object]) -> None:
    with pytest.raises(InputError, match="two layers"):
        replace(PLAIN, layers=PLAIN.layers[:1], **block)  # type: ignore[arg-type]


def test_the_torch_start_keeps_torchs_scales() -> None:
    shape = replace(PLAIN, start="torch", embed_dim=64, embed=replace(PLAIN.embed, widths=(400,)))
    params = shape.initial_params(0)
    bound = 1 / 20  # 400 inputs
    for name in ("embed.1.weight", "embed.1.bias"):
        assert 0.9 * bound < params[name].abs().max() <= bound
    assert params["layers.0.out.bias"].abs().max() == 0
    assert 0.5 < params["class_token"].std() < 1.5
