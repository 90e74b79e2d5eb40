"""Variants that are plain heads with tied weights (`nets/tied.py`), by the kernel for plain heads.

A step: the plain network's weights are formed from the variant's in torch, all lanes at once; the
kernel gives the losses and their gradients, member by member; torch carries these back to the
variant's own weights and moves them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import require
from headwise.nets.pooled import PooledShape
from headwise.nets.tied import fixed_params, plain_twin, twin_params
from headwise.training.fused.form import reach_of
from headwise.training.fused.layout import LINE, Layout, aligned, lay_out, locate
from headwise.training.fused.step import CROSS_ENTROPY, MSE, run
from headwise.training.samples.engine import Dataset, Losses, Order, Rates
from headwise.training.samples.specification import Training
from headwise.training.samples.stacked import StackedEngine

_STAND_STILL = np.zeros(1)  # one step at rate 0: the kernel takes gradients and moves nothing


class TiedEngine(StackedEngine):
    """Members in lanes, as in the stacked engine; what touches the tokens is the kernel's."""

    name = "fused"

    def __init__(
        self,
        shape: PooledShape,
        training: Training,
        params: Sequence[dict[str, Tensor]],
        seeds: Sequence[int],
    ) -> None:
        super().__init__(shape, training, params, seeds)
        self._variant = shape
        self._kernels: dict[tuple[int, int], _Kernel] = {}

    def advance(self, data: Dataset, order: Order, rates: Rates) -> Losses:
        """Take the steps; member m's step s uses the rows order[m, s]. Returns training losses."""
        require(order.size == 0 or order.min() >= 0, "rows are numbered from 0")
        count = len(data.inputs)
        require(order.size == 0 or order.max() < count, f"the data have {count} rows")
        size = data.inputs.shape[1], order.shape[2]
        if size not in self._kernels:
            kernel = _Kernel(plain_twin(self._variant), self._count, size)
            kernel.fill(fixed_params(self._variant))
            self._kernels[size] = kernel
        kernel, kind = self._kernels[size], MSE if self._training.loss == "mse" else CROSS_ENTROPY
        inputs, targets = data.by_coordinate.numpy().reshape(-1), data.targets.numpy().reshape(-1)
        rows, losses = np.array(order, np.int64, order="C"), np.zeros(order.shape[:2])
        for step, rate in enumerate(rates):
            twin = twin_params(self._variant, self._leaves)
            kernel.fill(twin)
            for member, lane in enumerate(self._lanes):
                here = slice(step, step + 1)
                kernel(lane, inputs, targets, rows[member, here], kind, losses[member, here])
            slopes = [kernel.slopes[name] for name in twin]
            self._adamw.carry(list(twin.values()), slopes, self._leaves, slice(self._count))
            self._move(float(rate))
        return losses


class _Kernel:
    """The kernel's memory for each lane, with views of the weights and of their gradients."""

    def __init__(self, twin: PooledShape, lanes: int, size: tuple[int, int]) -> None:
        self._layout: Layout = lay_out(twin, *size)
        self._reach = reach_of(twin, size[0])
        room = -(-self._layout.total // LINE) * LINE  # every lane starts at a cache line
        self._memory = aligned(lanes * room).reshape(lanes, room)
        for ones in self._layout.ones:
            self._memory[:, ones] = 1
        self._weights = self._views(twin, 0)
        self.slopes = self._views(twin, self._layout.state)

    def _views(self, twin: PooledShape, start: int) -> dict[str, Tensor]:
        """The parameters of all lanes by name, `start` numbers behind the weights."""
        memory, views = torch.from_numpy(self._memory), {}
        places = locate(twin, self._layout.weights)
        for name, size in twin.parameter_shapes().items():
            place = places[name]
            strides = (place.row, place.column) if len(size) == 2 else (place.column,)
            strides = (memory.stride(0), *strides)
            views[name] = memory.as_strided((len(memory), *size), strides, start + place.at)
        return views

    def fill(self, params: Mapping[str, Tensor]) -> None:
        """Set the weights of all lanes."""
        with torch.no_grad():
            for name, value in params.items():
                self._weights[name].copy_(value)

    def __call__(
        self,
        lane: int,
        inputs: np.ndarray,
        targets: np.ndarray,
        rows: np.ndarray,
        loss_kind: int,
        losses: np.ndarray,
    ) -> None:
        """The loss of one lane's network on a batch; `slopes` holds its gradients then."""
        layout = self._layout
        run(
            self._memory[lane], layout.sizes, layout.weights, layout.grads, layout.scratch,
            layout.state, np.float32(1), inputs, targets, rows, _STAND_STILL, 0, loss_kind, 0.0,
            1.0, losses, np.zeros(0, np.float32), self._reach,
        )  # fmt: skip
