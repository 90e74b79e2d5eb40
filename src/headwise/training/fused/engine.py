"""The fused engine: one-layer class-token networks on a CPU, one compiled call a member."""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.nets import ClassTokenShape
from headwise.nets.pooled import SequenceNetShape
from headwise.training.fused.form import kernel_form, reach_of
from headwise.training.fused.layout import Layout, aligned, lay_out, locate, view
from headwise.training.fused.scope import covers, tied
from headwise.training.fused.step import CROSS_ENTROPY, MSE, run
from headwise.training.samples.engine import Dataset, Losses, Order, Rates
from headwise.training.samples.specification import Training

PREDICTED_AT_ONCE = 256
COPIES = 4  # parameters, gradients and AdamW's two moments, each as large


class FusedEngine:
    """Members are independent: one after another, each takes all the steps asked for."""

    name = "fused"

    def __init__(
        self,
        shape: SequenceNetShape,
        training: Training,
        members: Sequence[Mapping[str, Tensor]],
    ) -> None:
        """Start from the given parameters, one mapping a member."""
        reason = covers(shape, training)
        require(reason is None, f"the fused engine does not fit: {reason}")
        require(not tied(shape), "heads of tied weights are trained by samples.tied's engine")
        self._shape, self._training = shape, training
        self._taken = 0
        self._layouts: dict[tuple[int, int], tuple[Layout, np.ndarray]] = {}
        layout, _ = self._prepared(1, 1)
        self._places = locate(shape, layout.weights)
        self._state = np.zeros((len(members), COPIES * layout.state), np.float32)
        for state, params in zip(self._state, members, strict=True):
            for name, size in shape.parameter_shapes().items():
                view(state, self._places[name], size)[...] = params[name].numpy(force=True)

    def advance(self, data: Dataset, order: Order, rates: Rates) -> Losses:
        """Take the steps; member m's step s uses the rows order[m, s]. Returns training losses."""
        members, steps, batch = order.shape
        count, length, _ = data.inputs.shape
        require(members == len(self._state), f"the order is for {members} members")
        require(len(data.targets) == count, "there are as many targets as sequences")
        require(order.size == 0 or order.min() >= 0, "rows are numbered from 0")
        require(order.size == 0 or order.max() < count, f"the data have {count} rows")
        losses = np.zeros((members, steps))
        if losses.size:
            inputs, targets = _flat(data.by_coordinate), _flat(data.targets)
            rows = np.array(order, np.int64, order="C")
            for member, state in enumerate(self._state):
                self._call(
                    (length, batch), state, inputs, targets, rows[member], rates, losses[member]
                )
        self._taken += steps
        return losses

    def predict(
        self, inputs: Float[Tensor, "count length token_dim"]
    ) -> Float[Tensor, "members count outputs"]:
        """Outputs of the current weights, without gradients, in bounded memory."""
        count, length, _ = inputs.shape
        by_coordinate = _flat(inputs.mT)
        outputs = np.zeros((len(self._state), count, self._shape.outputs), np.float32)
        none, nothing = np.zeros(0, np.float32), np.zeros(0)
        whole = count // PREDICTED_AT_ONCE * PREDICTED_AT_ONCE
        for state, output in zip(self._state, outputs, strict=True):
            for first, last, size in ((0, whole, PREDICTED_AT_ONCE), (whole, count, count - whole)):
                if first < last:
                    rows, out = np.arange(first, last), output[first:last].reshape(-1)
                    call = (state, by_coordinate, none, rows.reshape(-1, size), nothing, nothing)
                    self._call((length, size), *call, out)
        return torch.from_numpy(outputs)

    def params(self) -> list[dict[str, Tensor]]:
        """Copies of the current weights, one dictionary a member."""
        return self._copies(0)

    def gradients(self) -> list[dict[str, Tensor]]:
        """Gradients of the last step's loss, before clipping, one dictionary a member."""
        return self._copies(self._state.shape[1] // COPIES)

    def _copies(self, start: int) -> list[dict[str, Tensor]]:
        sizes = self._shape.parameter_shapes()
        return [
            {
                name: torch.from_numpy(view(state[start:], self._places[name], size).copy())
                for name, size in sizes.items()
            }
            for state in self._state
        ]

    def _call(
        self,
        size: tuple[int, int],
        state: np.ndarray,
        inputs: np.ndarray,
        targets: np.ndarray,
        rows: np.ndarray,
        rates: np.ndarray,
        losses: np.ndarray,
        outputs: np.ndarray | None = None,
    ) -> None:
        """Run the kernel on one member. What other members left in the array is wiped."""
        layout, memory = self._prepared(*size)
        memory[state.size :] = 0
        memory[: state.size] = state
        for ones in layout.ones:
            memory[ones] = 1
        form = kernel_form(self._shape)
        run(
            memory,
            layout.sizes,
            layout.weights,
            layout.grads,
            layout.scratch,
            layout.state,
            np.float32(1 / sqrt(form.layer.qk_dim) if form.scaled else 1),
            inputs,
            targets,
            rows,
            np.array(rates, np.float64),
            self._taken,
            MSE if self._training.loss == "mse" else CROSS_ENTROPY,
            float(self._training.weight_decay),
            float(self._training.clip),
            losses,
            np.zeros(0, np.float32) if outputs is None else outputs,
            reach_of(self._shape, size[0]),
        )
        state[:] = memory[: state.size]

    def _prepared(self, length: int, batch: int) -> tuple[Layout, np.ndarray]:
        """Layout and memory for such batches; one of each kind is kept."""
        if (length, batch) not in self._layouts:
            layout = lay_out(self._shape, length, batch)
            self._layouts[length, batch] = layout, aligned(layout.total)
        return self._layouts[length, batch]


def _flat(values: Tensor) -> np.ndarray:
    """The numbers in row-major order, as the kernel's one type of array."""
    flat = np.ascontiguousarray(values.numpy(force=True), np.float32).reshape(-1)
    return flat if flat.flags.writeable else flat.copy()


def try_out() -> None:
    """One step and one prediction of the smallest network: compiles the kernel if need be."""
    shape = ClassTokenShape.standard(token_dim=1, heads=1, head_dim=1, width=1)
    training = Training(steps=1, rate=1e-3, batch=1, samples=1)
    engine = FusedEngine(shape, training, [shape.initial_params(0)])
    data = Dataset(torch.ones(1, 1, 1), torch.ones(1, 1))
    losses = engine.advance(data, np.zeros((1, 1, 1), np.int64), np.array([1e-3]))
    outputs = engine.predict(data.inputs)
    if not (np.isfinite(losses).all() and torch.isfinite(outputs).all()):
        raise ArithmeticError("a step on the smallest network is not finite")
