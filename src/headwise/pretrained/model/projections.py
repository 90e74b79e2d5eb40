"""The linear maps of a reduced layer: dense, or the product of two thin ones."""

from typing import cast

from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.plan.shapes import LayerLayout


class Factored(nn.Sequential):
    """The product of two thin linear maps, without a module's overhead for each."""

    def forward(self, inputs: Tensor) -> Tensor:
        """The two maps, one after the other."""
        thin, wide = cast("list[nn.Linear]", list(self._modules.values()))
        return nn.functional.linear(
            nn.functional.linear(inputs, thin.weight, None), wide.weight, wide.bias
        )


def projection(inputs: int, outputs: int, bias: bool, rank: int | None) -> nn.Module:
    """Dense, or the product of two thin factors."""
    if rank is None:
        return nn.Linear(inputs, outputs, bias=bias)
    return Factored(nn.Linear(inputs, rank, bias=False), nn.Linear(rank, outputs, bias=bias))


def output_projection(site: AttentionSite, layout: LayerLayout) -> nn.Module:
    """From the heads' contexts, side by side, to the hidden state."""
    shape = layout.shape
    width = sum(len(group.heads) * group.v_dim for group in shape.groups)
    return projection(width, site.hidden, "output" in layout.biases, shape.output_rank)
