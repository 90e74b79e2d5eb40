"""Products of two matrices with an identity in one of them, which need not be stored.

A product B·A of inner size r is the same as (B G)·(G⁻¹ A) for every r × r matrix G. With G⁻¹ some r
rows of B, those rows become the identity's and r² numbers less are to be stored; with G some r
columns of A likewise. The rows or columns, called pivots, are chosen by QR with column pivoting:
one after the other the one that is farthest from what those before span, so that the others follow
from them by small numbers.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from headwise.pretrained.adapters import LinearPart
from headwise.pretrained.plan.shapes import identity

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


class Pivoted(nn.Sequential):
    """Some outputs by a thin map, the others from those; then all in their `order`."""

    order: Tensor

    def __init__(self, inputs: int, outputs: int, rank: int, bias: bool) -> None:
        first = nn.Linear(inputs, rank, bias=bias)
        super().__init__(first, nn.Linear(rank, outputs - rank, bias=bias))
        self.register_buffer("order", torch.arange(outputs))

    def forward(self, inputs: Tensor) -> Tensor:
        """Pivots, what follows from them, each at its place.

        More tokens than pivots are a larger result than the matrix that gives it from the pivots,
        and rows are put in order quicker than columns: so then it is done to the matrix.
        """
        first, others = cast("list[nn.Linear]", list(self._modules.values()))
        rank = first.weight.shape[0]
        if inputs.shape[:-1].numel() <= rank:
            return torch.cat(self.parts(inputs), dim=-1).index_select(-1, self.order)
        pivots = nn.functional.linear(inputs, first.weight, first.bias)
        itself = torch.eye(rank, dtype=pivots.dtype, device=pivots.device)
        rows = torch.cat([itself, others.weight]).index_select(0, self.order)
        bias = cast("Tensor | None", others.bias)
        if bias is not None:
            bias = torch.cat([bias.new_zeros(rank), bias]).index_select(0, self.order)
        return nn.functional.linear(pivots, rows, bias)

    def parts(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Pivots, and what follows from them, not in their order."""
        first, others = cast("list[nn.Linear]", list(self._modules.values()))
        pivots = nn.functional.linear(inputs, first.weight, first.bias)
        return pivots, nn.functional.linear(pivots, others.weight, others.bias)


class PivotedHeads(nn.Module):
    """Heads side by side, each of which gives its pivots among the inputs plus what others add.

    The whole matrix is written out before it is used. Without gradients it stays for the calls that
    follow, which may be of one token each, until the weights change.
    """

    pivots: Tensor

    def __init__(self, inputs: int, sizes: list[int]) -> None:
        super().__init__()
        self.inputs, self.sizes = inputs, sizes
        identities = [identity(inputs, size) for size in sizes]
        self.dense = [not pivots for pivots in identities]
        counts = [size * (inputs - pivots) for size, pivots in zip(sizes, identities, strict=True)]
        self.weight = nn.Parameter(torch.empty(sum(counts)))
        self.register_buffer("pivots", torch.zeros(sum(identities), dtype=torch.long))
        self._kept: tuple[Any, Tensor] | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        """The linear map."""
        return nn.functional.linear(inputs, self._matrix())

    def _matrix(self) -> Tensor:
        passing = torch.is_grad_enabled() or torch.compiler.is_compiling()
        if passing or self.weight.is_inference():  # which does not tell when it changes
            self._kept = None
            return self._written()
        both = (self.weight, self.pivots)
        now = [(each.data_ptr(), each._version, each.dtype, each.device) for each in both]
        if self._kept is None or self._kept[0] != now:
            self._kept = now, self._written()
        return self._kept[1]

    def _written(self) -> Tensor:
        """A one where a row has its pivot, the weights where its head has none."""
        weight, device = self.weight, self.weight.device
        heads = [head for head, size in enumerate(self.sizes) for _ in range(size)]
        rows = [row for row, head in enumerate(heads) if not self.dense[head]]
        head_of, row = (
            torch.tensor(each, dtype=torch.long, device=device) for each in (heads, rows)
        )
        stored = torch.ones(len(self.sizes), self.inputs, dtype=torch.bool, device=device)
        stored = stored.index_put((head_of[row], self.pivots), stored.new_zeros(()))[head_of]
        whole = weight.new_zeros(len(heads), self.inputs)
        whole = whole.index_put((row, self.pivots), weight.new_ones(()))
        return whole.masked_scatter(stored, weight)

    def __getstate__(self) -> dict[str, Any]:
        """Without the matrix: a copy writes its own."""
        return self.__dict__ | {"_kept": None}


def pivoted(thin: LinearPart, wide: LinearPart) -> tuple[list[LinearPart], Tensor | None]:
    """wide·thin as the weights and the order of a `Pivoted`, or (of few heads) as one matrix."""
    rank, product = thin.weight.shape[0], wide.weight @ thin.weight
    if rank >= len(product):
        return [LinearPart(product, wide.bias)], None
    basis = torch.linalg.qr(wide.weight).Q
    order = _farthest_first(basis.T)
    pivots, rest = order[:rank], order[rank:]
    follow = torch.linalg.solve(basis[pivots].T, basis[rest].T).T
    first = later = None
    if wide.bias is not None:
        first, later = wide.bias[pivots], wide.bias[rest] - follow @ wide.bias[pivots]
    return [LinearPart(product[pivots], first), LinearPart(follow, later)], order.argsort()


def pivoted_heads(weight: Tensor, sizes: list[int]) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The weights and pivots of a `PivotedHeads`, and for each head the map T after which it gives
    what it gave: rows = T · pivoted rows."""
    packed, places, turns = [], [], []
    for rows in weight.split(sizes):
        size, inputs = rows.shape
        if not identity(inputs, size):
            packed.append(rows.flatten())
            turns.append(torch.eye(size, dtype=rows.dtype, device=rows.device))
            continue
        basis, triangle = torch.linalg.qr(rows.T)
        pivots = _farthest_first(basis.T)[:size].sort().values
        others = torch.ones(inputs, dtype=torch.bool).to(rows.device).index_fill(0, pivots, False)
        packed.append(torch.linalg.solve(basis[pivots].T, basis[others].T).flatten())
        places.append(pivots)
        turns.append(triangle.T @ basis[pivots].T)
    return torch.cat(packed), torch.cat(places) if places else weight.new_zeros(0).long(), turns


def _farthest_first(columns: Tensor) -> Tensor:
    """The order of the columns by QR with pivoting.

    In one thread: its steps are short, and several wait for one another at each. Beside another
    program on two cores that was 600 times as slow.
    """
    from scipy.linalg import qr

    with _blas().limit(limits=1, user_api="blas"):
        _, order = qr(columns.cpu().numpy(), mode="r", pivoting=True)
    return torch.from_numpy(order).to(columns.device, torch.long)


@cache
def _blas() -> "ThreadpoolController":
    """To look for the libraries that are loaded takes as long as one such order."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
