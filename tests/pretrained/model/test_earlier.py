"""A model run from one block on puts out what it puts out when run whole."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from small_models import FAMILIES, small_material, small_model
from torch import nn

from headwise.pretrained import attention_sites
from headwise.pretrained.model.earlier import EarlierBlocks


@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_blocks_before_a_change_are_not_run_again(name: str) -> None:
    model = small_model(name).eval()
    sites, batch = attention_sites(model), small_material(model).calibration[0]
    blocks = EarlierBlocks(model, sites, batch)
    assert blocks.order  # every family can be run from a block on
    last = blocks.blocks.index(blocks.order[-1])
    model.get_submodule(sites[last].output).weight.mul_(1.5)
    ran: list[str] = []
    for path, site in dict(zip(blocks.blocks, sites, strict=True)).items():
        output = model.get_submodule(site.output)
        output.register_forward_hook(lambda *_, path=path: ran.append(path))
    changed = blocks.outputs(last)
    assert ran == blocks.order[-1:]
    whole = model(**batch)
    assert len(ran) == 1 + len(blocks.order)
    torch.testing.assert_close(changed[0], whole[0])
    assert not torch.allclose(whole[0], blocks.original[0])


class Carrying(nn.Module):
    """Blocks that tell each other something beside what they put out."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleDict({"a": nn.Linear(3, 3)}) for _ in range(3))
        for index, layer in enumerate(self.layers):
            layer.forward = lambda x, index=index: self.step(index, x)
        self.state = 0.0

    def step(self, index: int, x: torch.Tensor) -> Any:
        self.state += float(x.sum())
        return self.layers[index]["a"](x) + self.state

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        self.state = 0.0
        for layer in self.layers:
            x = layer(x)
        return (x,)


@torch.no_grad()
def test_a_model_that_cannot_be_run_from_a_block_on_is_run_whole() -> None:
    model, x = Carrying(), torch.ones(1, 3)
    forwards = [layer.forward for layer in model.layers]
    sites: Any = [SimpleNamespace(path=f"layers.{index}.a") for index in (0, 2)]
    blocks = EarlierBlocks(model, sites, {"x": x})
    assert blocks.order == []
    torch.testing.assert_close(blocks.outputs(1)[0], model(x)[0])
    assert [layer.forward for layer in model.layers] == forwards
