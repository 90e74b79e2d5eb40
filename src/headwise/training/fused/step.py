"""Whole training steps of one network: loss, gradients, clipping, AdamW."""

import numpy as np

from headwise.core.compiled.host import LANES, entry, pasted
from headwise.core.compiled.simd import div, fma, load, mul, splat, sqrt, store, sub, total
from headwise.training.fused.fold import fold, set_constants, unfold
from headwise.training.fused.layout import Scratch, Sizes, Weights
from headwise.training.fused.pooling import clear, collect, pool, pool_back
from headwise.training.fused.products import Memory
from headwise.training.fused.readout import read, read_back, read_gradients

MSE, CROSS_ENTROPY = 0, 1
FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8  # torch.optim.AdamW's defaults
ZERO = np.float32(0)


@entry
def run(
    memory: Memory,
    sizes: Sizes,
    weights: Weights,
    grads: Weights,
    scratch: Scratch,
    state: int,
    scale: float,
    inputs: Memory,
    targets: Memory,
    order: np.ndarray,
    rates: np.ndarray,
    taken: int,
    loss_kind: int,
    decay: float,
    clip: float,
    losses: np.ndarray,
    outputs: Memory,
    reach: np.ndarray,
) -> None:
    """Steps over the rows of `order`; without rates, only the outputs, one row after another.

    `inputs` is (count, token_dim, length) flattened, `targets` (count, outputs) flattened.
    `taken` steps were made before. Head i sees the tokens reach[2i] ≤ t < reach[2i + 1].
    """
    learn, starts = rates.size > 0, np.empty(LANES, np.int64)
    for step in range(order.shape[0]):
        set_constants(memory, sizes, weights)
        fold(memory, sizes, weights, scratch, scale)
        if learn:
            memory[state : 2 * state] = ZERO
            clear(memory, sizes, scratch)
        batch, loss = order.shape[1], 0.0
        for first in range(0, batch, sizes.group):
            count = min(sizes.group, batch - first)
            rows = order[step, first:]
            pool(memory, sizes, weights, scratch, inputs, rows, count, starts, reach)
            read(memory, sizes, weights, scratch, first, count)
            if learn:
                loss += judge(memory, sizes, scratch, targets, rows, first, count, batch, loss_kind)
                read_back(memory, sizes, weights, grads, scratch, first, count)
                pool_back(memory, sizes, scratch, first, count)
            else:
                emit(memory, sizes, scratch, first, count, outputs[step * batch * sizes.outputs :])
        if learn:
            losses[step] = loss
            collect(memory, sizes, grads, scratch)
            read_gradients(memory, sizes, weights, grads, scratch, batch)
            unfold(memory, sizes, weights, grads, scratch, scale)
            update(memory, state, rates[step], taken + step + 1, decay, clip)


@pasted
def emit(
    memory: Memory, sizes: Sizes, scratch: Scratch, first: int, count: int, outputs: Memory
) -> None:
    """Write the outputs of a batch to their place among all outputs."""
    for b in range(first, first + count):
        for o in range(sizes.outputs):
            outputs[b * sizes.outputs + o] = memory[scratch.output.at + o * scratch.output.row + b]


@pasted
def judge(
    memory: Memory,
    sizes: Sizes,
    scratch: Scratch,
    targets: Memory,
    rows: np.ndarray,
    first: int,
    count: int,
    batch: int,
    kind: int,
) -> float:
    """A group's share of the loss; writes the gradient of the outputs."""
    output, grad = scratch.output, scratch.output_grad
    for o in range(sizes.outputs):  # whole vectors: columns beyond the group have no gradient
        at = grad.at + o * grad.row + first
        for b in range(count, (count + LANES - 1) // LANES * LANES):
            memory[at + b] = ZERO
    loss = 0.0
    for b in range(count):
        at, slope = output.at + first + b, grad.at + first + b
        wanted = rows[b] * sizes.outputs
        if kind == MSE:
            for o in range(sizes.outputs):
                error = np.float64(memory[at + o * output.row] - targets[wanted + o])
                loss += error * error
                memory[slope + o * grad.row] = 2 * error / (batch * sizes.outputs)
        else:
            top = memory[at]
            for o in range(sizes.outputs):
                top = max(top, memory[at + o * output.row])
            summed, mass = 0.0, 0.0
            for o in range(sizes.outputs):
                summed += np.exp(np.float64(memory[at + o * output.row] - top))
                mass += targets[wanted + o]
            log_sum = np.log(summed)
            for o in range(sizes.outputs):
                score = np.float64(memory[at + o * output.row] - top) - log_sum
                loss -= targets[wanted + o] * score
                excess = np.exp(score) * mass - targets[wanted + o]
                memory[slope + o * grad.row] = excess / batch
    return loss / (batch * sizes.outputs) if kind == MSE else loss / batch


@pasted
def update(memory: Memory, state: int, rate: float, step: int, decay: float, clip: float) -> None:
    """AdamW on the gradient scaled to a norm of at most `clip`."""
    squares = splat(ZERO)
    for at in range(state, 2 * state, LANES):
        gradient = load(memory, at)
        squares = fma(gradient, gradient, squares)
    norm = np.sqrt(np.float64(total(squares)))
    shrink = splat(np.float32(min(clip / (norm + 1e-6), 1.0) if norm == norm else norm))
    keep = splat(np.float32(1 - rate * decay))
    size = splat(np.float32(rate / (1 - FIRST**step)))
    correct = splat(np.float32(1 / np.sqrt(1 - SECOND**step)))
    first, second = splat(np.float32(1 - FIRST)), splat(np.float32(1 - SECOND))
    old, epsilon = splat(np.float32(SECOND)), splat(np.float32(EPSILON))
    for at in range(0, state, LANES):
        gradient = mul(load(memory, at + state), shrink)
        mean, square = load(memory, at + 2 * state), load(memory, at + 3 * state)
        mean = fma(sub(gradient, mean), first, mean)
        square = fma(mul(gradient, gradient), second, mul(square, old))
        store(memory, at + 2 * state, mean)
        store(memory, at + 3 * state, square)
        move = div(mul(size, mean), fma(sqrt(square), correct, epsilon))
        store(memory, at, sub(mul(load(memory, at), keep), move))
