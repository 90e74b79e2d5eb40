"""From pooled tokens to the loss and back: value map, output map, norm, readout MLP.

Sequences are columns here, so every weight matrix is the left factor as it is stored. A group of
sequences fills columns first … first + count of matrices that hold the whole batch; the maps'
gradients, sums over the batch, are taken once at its end. Columns beyond the batch have zero
gradient.
"""

import numpy as np

from headwise.core.compiled.host import LANES, pasted
from headwise.core.compiled.simd import (
    add,
    div,
    fma,
    gelu,
    load,
    mul,
    splat,
    sqrt,
    store,
    sub,
    total,
)
from headwise.training.fused.fold import folds_readout, key_map
from headwise.training.fused.layout import Scratch, Sizes, Weights
from headwise.training.fused.pieces import pull_back
from headwise.training.fused.products import Memory, dots, flip, part, product
from headwise.training.fused.tiles import ADD, PLAIN

ZERO, ONE = np.float32(0), np.float32(1)
NORM_EPSILON = np.float32(1e-5)  # torch's default


@pasted
def read(
    memory: Memory, sizes: Sizes, weights: Weights, scratch: Scratch, first: int, count: int
) -> None:
    """The outputs of a group from its pooled tokens."""
    heads, rows = part(scratch.heads, 0, first), sizes.heads * sizes.v_dim
    for i in range(sizes.heads):
        value = part(scratch.values, key_map(sizes, i) * sizes.v_dim, 0)
        pooled = part(scratch.pooled, i * sizes.pooled_rows, 0)
        target = part(heads, i * sizes.v_dim, 0)
        product(memory, sizes.v_dim, count, sizes.width + 2, value, pooled, target, PLAIN)
    hidden, width = part(scratch.readout, 0, first), sizes.readout_width
    if folds_readout(sizes):
        product(memory, width, count, rows + 1, scratch.mix, heads, hidden, PLAIN)
    else:
        mixed, dim, mode = part(scratch.mixed, 0, first), sizes.embed_dim, PLAIN
        if sizes.residual:
            mode = ADD
            for e in range(dim):
                class_token = splat(memory[weights.class_token.at + e])
                for b in range(0, count, LANES):
                    store(memory, mixed.at + e * mixed.row + b, class_token)
        product(memory, dim, count, rows + 1, weights.out, heads, mixed, mode)
        if sizes.norm:
            normalise(memory, sizes, weights, scratch, first, count)
        product(memory, width, count, dim + 1, weights.readout0, mixed, hidden, PLAIN)
    for f in range(sizes.readout_width):
        for b in range(0, count, LANES):
            at = hidden.at + f * hidden.row + b
            value, slope = gelu(load(memory, at))
            store(memory, at, value)
            store(memory, scratch.slope.at + f * scratch.slope.row + b, slope)
    product(
        memory, sizes.outputs, count, sizes.readout_width + 1, weights.readout1, hidden,
        part(scratch.output, 0, first), PLAIN,
    )  # fmt: skip


@pasted
def normalise(
    memory: Memory, sizes: Sizes, weights: Weights, scratch: Scratch, first: int, count: int
) -> None:
    """Layer norm of each column of `mixed`."""
    mixed, normal = part(scratch.mixed, 0, first), part(scratch.normal, 0, first)
    scale, dim = splat(ONE / np.float32(sizes.embed_dim)), sizes.embed_dim
    for b in range(0, count, LANES):
        mean = splat(ZERO)
        for e in range(dim):
            mean = add(mean, load(memory, mixed.at + e * mixed.row + b))
        mean, variance = mul(mean, scale), splat(ZERO)
        for e in range(dim):
            centred = sub(load(memory, mixed.at + e * mixed.row + b), mean)
            variance = fma(centred, centred, variance)
        deviation = sqrt(fma(variance, scale, splat(NORM_EPSILON)))
        inverse = div(splat(ONE), deviation)
        store(memory, scratch.inverse.at + first + b, inverse)
        for e in range(dim):
            at, gain = mixed.at + e * mixed.row + b, weights.norm.at + e
            standard = mul(sub(load(memory, at), mean), inverse)
            store(memory, normal.at + e * normal.row + b, standard)
            bias = splat(memory[gain + weights.norm.row])
            store(memory, at, fma(standard, splat(memory[gain]), bias))


@pasted
def normalise_back(
    memory: Memory,
    sizes: Sizes,
    weights: Weights,
    grads: Weights,
    scratch: Scratch,
    first: int,
    count: int,
) -> None:
    """∂mixed = (g − mean g − n·mean(g·n))/deviation with g = ∂output·gain, n the normalised."""
    grad, normal = part(scratch.mixed_grad, 0, first), part(scratch.normal, 0, first)
    scale, dim = splat(ONE / np.float32(sizes.embed_dim)), sizes.embed_dim
    for b in range(0, count, LANES):
        mean, along = splat(ZERO), splat(ZERO)
        for e in range(dim):
            given = load(memory, grad.at + e * grad.row + b)
            standard = load(memory, normal.at + e * normal.row + b)
            gain = weights.norm.at + e
            memory[grads.norm.at + e] += total(mul(given, standard))
            memory[grads.norm.at + grads.norm.row + e] += total(given)
            weighted = mul(given, splat(memory[gain]))
            mean = add(mean, weighted)
            along = fma(weighted, standard, along)
        mean, along = mul(mean, scale), mul(along, scale)
        inverse = load(memory, scratch.inverse.at + first + b)
        for e in range(dim):
            at = grad.at + e * grad.row + b
            standard = load(memory, normal.at + e * normal.row + b)
            weighted = mul(load(memory, at), splat(memory[weights.norm.at + e]))
            rest = sub(sub(weighted, mean), mul(standard, along))
            store(memory, at, mul(rest, inverse))


@pasted
def read_back(
    memory: Memory,
    sizes: Sizes,
    weights: Weights,
    grads: Weights,
    scratch: Scratch,
    first: int,
    count: int,
) -> None:
    """From ∂output of a group to ∂pooled; adds up the gradient of the folded values."""
    output, hidden = part(scratch.output_grad, 0, first), part(scratch.readout_grad, 0, first)
    mixed, heads = part(scratch.mixed_grad, 0, first), part(scratch.heads_grad, 0, first)
    v_dim, packs = sizes.v_dim, (count + LANES - 1) // LANES
    back = flip(weights.readout1)
    product(memory, sizes.readout_width, count, sizes.outputs, back, output, hidden, PLAIN)
    for f in range(sizes.readout_width):
        for b in range(0, count, LANES):
            at, slope = hidden.at + f * hidden.row + b, scratch.slope.at + f * scratch.slope.row + b
            store(memory, at, mul(load(memory, at), load(memory, slope)))
    dim, rows, width = sizes.embed_dim, sizes.heads * v_dim, sizes.readout_width
    if folds_readout(sizes):
        product(memory, rows, count, width, flip(scratch.mix), hidden, heads, PLAIN)
    else:
        product(memory, dim, count, width, flip(weights.readout0), hidden, mixed, PLAIN)
        if sizes.norm:
            normalise_back(memory, sizes, weights, grads, scratch, first, count)
        product(memory, rows, count, dim, flip(weights.out), mixed, heads, PLAIN)
    for i in range(sizes.heads):
        row = key_map(sizes, i) * v_dim
        own, value = part(heads, i * v_dim, 0), part(scratch.values, row, 0)
        value_grad = part(scratch.values_grad, row, 0)
        pooled = part(scratch.pooled, i * sizes.pooled_rows, 0)
        dots(memory, v_dim, sizes.pooled_rows, count, own, pooled, value_grad, ADD)
        pull = part(scratch.pull, 0, i * sizes.pooled_rows * LANES)
        pull_back(memory, sizes.width + 2, packs, v_dim, value, own, pull)


@pasted
def read_gradients(
    memory: Memory, sizes: Sizes, weights: Weights, grads: Weights, scratch: Scratch, batch: int
) -> None:
    """Gradients of readout and output map, over the whole batch."""
    rows, dim, width = sizes.heads * sizes.v_dim + 1, sizes.embed_dim, sizes.readout_width
    hidden, output = scratch.readout_grad, scratch.output_grad
    dots(memory, sizes.outputs, width + 1, batch, output, scratch.readout, grads.readout1, PLAIN)
    if folds_readout(sizes):
        mix, first = scratch.mix_grad, grads.readout0
        dots(memory, width, rows, batch, hidden, scratch.heads, mix, PLAIN)
        dots(memory, width, dim, rows, mix, weights.out, first, PLAIN)
        for f in range(width):
            memory[first.at + f * first.row + dim] = memory[mix.at + f * mix.row + rows - 1]
        back = flip(weights.readout0)
        product(memory, dim, rows, width, back, mix, grads.out, PLAIN)
    else:
        dots(memory, width, dim + 1, batch, hidden, scratch.mixed, grads.readout0, PLAIN)
        dots(memory, dim, rows, batch, scratch.mixed_grad, scratch.heads, grads.out, PLAIN)
