"""Where everything lies: one array of float32 for a network, its optimizer and all scratch.

Every linear map is stored with its bias as one more column. Those behind `embed0`, where the sums
start from the bias, meet inputs that end in a 1. Two matrices hold more than parameters:

    embed1   rows W₂ | b₂ | c − b₂, and below them one row 0 | 1 | 0 that meets the value bias
    class    c | 1

The extra entries are set before each step and have no gradient. Rows are padded with zeros to
whole vectors; zeros have zero gradient and stay. `embed0` is stored transposed.
"""

from typing import NamedTuple

import numpy as np

from headwise.core.compiled.host import LANES
from headwise.nets.pooled import SequenceNetShape
from headwise.training.fused.form import KernelForm, kernel_form
from headwise.training.fused.products import Block

PIECE_FLOATS = 8192  # of a piece's hidden layer: a first-level cache of 32 KB; less is slower
L2_FLOATS = 32768  # of a group's hidden layer: a quarter of a 512 KB second-level cache
TILE = 4  # pieces are of so many tokens or a multiple
DOTS = LANES // 2  # columns of a tile of dot products
LINE = 16  # floats of a cache line; one behind each long row keeps rows from sharing cache sets


class Sizes(NamedTuple):
    """Sizes of the network and how a batch is cut up. Flags are 0 or 1."""

    token_dim: int
    width: int
    embed_dim: int
    heads: int
    key_maps: int  # of keys and of values: as many as heads, or fewer that heads share
    by_features: int  # linear attention: weights are sums of features, not exponentials
    score_maps: int  # linear maps of a token that weights are made of: heads, or heads·qk_dim
    attention_rows: int  # of a piece: weights, scores' gradients and, by features, the weights'
    kept: int  # largest scores that a head keeps; 0: all
    qk_dim: int
    v_dim: int
    readout_width: int
    outputs: int
    class_token_is_key: int
    residual: int
    norm: int
    length: int
    pooled_rows: int  # of a head: width + 2 and zeros up to whole tiles of the dot products
    piece: int  # tokens that go through at once
    pieces: int  # of a sequence
    group: int  # sequences whose hidden layer is kept for the backward pass: whole packs


class Weights(NamedTuple):
    """The parameters, or their gradients."""

    embed0: Block  # (token_dim + 1) × width
    embed1: Block  # (embed_dim + 1) × (width + 2)
    class_token: Block  # 1 × (embed_dim + 1)
    query: Block  # heads·qk_dim × (embed_dim + 1)
    key: Block  # key_maps·qk_dim × (embed_dim + 1)
    value: Block  # key_maps·v_dim × (embed_dim + 1)
    out: Block  # embed_dim × (heads·v_dim + 1)
    norm: Block  # 2 × embed_dim
    readout0: Block  # readout_width × (embed_dim + 1)
    readout1: Block  # outputs × (readout_width + 1)


class Scratch(NamedTuple):
    """Intermediate results: up to `slope` of a group, up to `factor` of a pack, then of a batch.

    Where rows are of vectors, an element is a vector, which has a sequence a lane.
    """

    tokens: Block  # x_t: pack after pack, token_dim rows of length vectors
    hidden: Block  # r_t: pack after pack and piece after piece, width rows of vectors
    attention: Block  # above the gradient of the scores: likewise, `attention_rows` of vectors
    peak: Block  # likewise, heads vectors: the maximum that the piece's exponents refer to
    top: Block  # pack after pack, heads vectors: the final maximum
    share: Block  # likewise: 1/Σ exp
    pooled: Block  # head after head, rows P_i, 1, weight of the class token: by sequences
    pull: Block  # pack after pack, head after head, vectors: gradient of `pooled`
    slope: Block  # derivative of the readout's activation: readout_width × sequences
    sums: Block  # one pack's P before division: heads·width vectors
    mean: Block  # heads vectors: Σ_t a_t·∂a_t
    factor: Block  # heads vectors, passing
    embed_sums: Block  # gradients of embed0 and scores, a vector a number, lanes not yet added up
    scores_sums: Block
    query_sums: Block  # likewise of the queries' features
    class_score: Block  # pack after pack, heads vectors; −∞ where the class token is no key
    vector: Block  # scaled query: 1 × heads·qk_dim
    vector_grad: Block
    features: Block  # φ of query and of the class token's key: 2 × heads·qk_dim
    direction: Block  # u_i: heads × (embed_dim + 1)
    direction_grad: Block
    scores: Block  # u_iᵀ·embed1, or key·embed1: score_maps × (width + 2)
    scores_grad: Block
    values: Block  # value·embed1: key_maps·v_dim × (width + 2)
    values_grad: Block
    mix: Block  # readout0·out, where nothing stands between: readout_width × (heads·v_dim + 1)
    mix_grad: Block
    heads: Block  # heads' outputs | 1: (heads·v_dim + 1) × batch
    heads_grad: Block
    mixed: Block  # what the readout sees | 1: (embed_dim + 1) × batch
    mixed_grad: Block
    normal: Block  # normalised, before the norm's weight: embed_dim × batch
    inverse: Block  # 1/standard deviation: 1 × batch
    readout: Block  # hidden layer of the readout | 1: (readout_width + 1) × batch
    readout_grad: Block
    output: Block  # outputs × batch
    output_grad: Block


class Layout(NamedTuple):
    """Where everything lies, and how much memory it takes."""

    sizes: Sizes
    weights: Weights
    grads: Weights
    scratch: Scratch
    state: int  # floats of the parameters; gradients and both moments follow, equally large
    total: int
    ones: tuple[slice, ...]  # what is 1 throughout: above all what meets biases


def lay_out(shape: SequenceNetShape, length: int, batch: int) -> Layout:
    """The layout for batches of up to `batch` sequences of `length` tokens."""
    sizes = _sizes(kernel_form(shape), length, batch)
    place = _Placer()
    dim, width, readout = sizes.embed_dim, sizes.width, sizes.readout_width
    query_rows, value_rows = sizes.heads * sizes.qk_dim, sizes.heads * sizes.v_dim
    weights = Weights(
        embed0=place(sizes.token_dim + 1, width),
        embed1=place(dim + 1, width + 2),
        class_token=place(1, dim + 1),
        query=place(query_rows, dim + 1),
        key=place(sizes.key_maps * sizes.qk_dim, dim + 1),
        value=place(sizes.key_maps * sizes.v_dim, dim + 1),
        out=place(dim, value_rows + 1),
        norm=place(2, dim),
        readout0=place(readout, dim + 1),
        readout1=place(sizes.outputs, readout + 1),
    )
    state = place.end
    grads = Weights(*(Block(b.at + state, b.row, b.column) for b in weights))
    place.end = 4 * state

    group = sizes.group
    packs, stride = group // LANES, _padded(width + 2)
    blocks, columns = packs * sizes.pieces, sizes.piece * LANES + LINE
    lanes = _padded(batch) + LANES  # a short group writes whole vectors past its end
    scratch = Scratch(
        tokens=place(packs * sizes.token_dim, _padded(length) * LANES + LINE),
        hidden=place(blocks * width, columns),
        attention=place(blocks * sizes.attention_rows, columns),
        peak=place(blocks * sizes.heads, LANES),
        top=place(packs * sizes.heads, LANES),
        share=place(packs * sizes.heads, LANES),
        pooled=place(sizes.heads * sizes.pooled_rows, group),
        pull=place(packs, sizes.heads * sizes.pooled_rows * LANES),
        slope=place(readout, group),
        sums=place(sizes.heads * width, LANES),
        mean=place(sizes.heads, LANES),
        factor=place(sizes.heads, LANES),
        embed_sums=place(sizes.token_dim + 1, _padded(width) * LANES),
        scores_sums=place(sizes.score_maps, stride * LANES),
        query_sums=place(query_rows, LANES),
        class_score=place(packs * sizes.heads, LANES),
        vector=place(1, query_rows),
        vector_grad=place(1, query_rows),
        features=place(2, query_rows),
        direction=place(sizes.heads, dim + 1),
        direction_grad=place(sizes.heads, dim + 1),
        scores=place(sizes.score_maps, stride),
        scores_grad=place(sizes.score_maps, stride),
        values=place(sizes.key_maps * sizes.v_dim, stride),
        values_grad=place(sizes.key_maps * sizes.v_dim, stride),
        mix=place(readout, value_rows + 1),
        mix_grad=place(readout, value_rows + 1),
        heads=place(value_rows + 1, lanes),
        heads_grad=place(value_rows, lanes),
        mixed=place(dim + 1, lanes),
        mixed_grad=place(dim, lanes),
        normal=place(dim * sizes.norm, lanes),
        inverse=place(1, lanes),
        readout=place(readout + 1, lanes),
        readout_grad=place(readout, lanes),
        output=place(sizes.outputs, lanes),
        output_grad=place(sizes.outputs, lanes),
    )
    rows = [(scratch.heads, value_rows), (scratch.mixed, dim), (scratch.readout, readout)]
    rows += [(scratch.pooled, i * sizes.pooled_rows + width) for i in range(sizes.heads)]
    ones = tuple(slice(b.at + row * b.row, b.at + (row + 1) * b.row) for b, row in rows)
    return Layout(sizes, weights, grads, scratch, state, place.end + LANES, ones)


def locate(shape: SequenceNetShape, weights: Weights) -> dict[str, Block]:
    """Where each parameter of the network lies; a bias is a single column (or row)."""

    def row(block: Block, index: int) -> Block:
        return Block(block.at + index * block.row, 0, block.column)

    def column(block: Block, index: int) -> Block:
        return Block(block.at + index * block.column, block.column, block.row)

    dim, width, token_dim = shape.embed_dim, shape.embed.widths[0], shape.token_dim
    layer = kernel_form(shape).layer
    value_rows = layer.heads * layer.v_dim
    first = weights.embed0
    places = {
        "embed.0.weight": Block(first.at, first.column, first.row),
        "embed.0.bias": row(first, token_dim),
        "embed.1.weight": weights.embed1,
        "embed.1.bias": column(weights.embed1, width),
        "class_token": row(weights.class_token, 0),
        "layers.0.norm.weight": row(weights.norm, 0),
        "layers.0.norm.bias": row(weights.norm, 1),
    }
    maps = {
        "layers.0.query": (weights.query, dim),
        "layers.0.key": (weights.key, dim),
        "layers.0.value": (weights.value, dim),
        "layers.0.out": (weights.out, value_rows),
        "readout.0": (weights.readout0, dim),
        "readout.1": (weights.readout1, shape.readout.widths[0]),
    }
    for name, (block, bias) in maps.items():
        places |= {f"{name}.weight": block, f"{name}.bias": column(block, bias)}
    return {name: places[name] for name in shape.parameter_shapes()}


def aligned(count: int) -> np.ndarray:
    """Zeros that start at a cache line, so that no vector straddles two."""
    spare = np.zeros(count + LINE, np.float32)
    start = -spare.ctypes.data // 4 % LINE
    return spare[start : start + count]


def view(memory: np.ndarray, block: Block, size: tuple[int, ...]) -> np.ndarray:
    """The numbers of a block as a writable array of the given size (a vector reads columns)."""
    strides = (block.row, block.column) if len(size) == 2 else (block.column,)
    bytes_apart = tuple(4 * stride for stride in strides)
    return np.lib.stride_tricks.as_strided(memory[block.at :], size, bytes_apart)


def _sizes(form: KernelForm, length: int, batch: int) -> Sizes:
    width, layer = form.width, form.layer
    score_maps = layer.heads * layer.qk_dim if form.by_features else layer.heads
    piece = max(TILE, PIECE_FLOATS // (width * LANES) // TILE * TILE)
    packs = max(1, L2_FLOATS // (width * length * LANES))
    return Sizes(
        token_dim=form.token_dim,
        width=width,
        embed_dim=form.embed_dim,
        heads=layer.heads,
        key_maps=form.key_maps,
        by_features=int(form.by_features),
        score_maps=score_maps,
        attention_rows=score_maps + layer.heads * (2 if form.by_features else 1),
        kept=form.kept,
        qk_dim=layer.qk_dim,
        v_dim=layer.v_dim,
        readout_width=form.readout_width,
        outputs=form.outputs,
        class_token_is_key=int(form.class_token_is_key),
        residual=int(form.residual),
        norm=int(form.norm),
        length=length,
        pooled_rows=-(-(width + 2) // DOTS) * DOTS,
        piece=min(piece, length),
        pieces=-(-length // piece),
        group=min(packs * LANES, _padded(batch)),
    )


class _Placer:
    """Gives out consecutive blocks with rows of whole vectors, from cache line to cache line."""

    def __init__(self) -> None:
        self.end = 0

    def __call__(self, rows: int, columns: int) -> Block:
        block = Block(self.end, _padded(columns), 1)
        self.end += -(-rows * block.row // LINE) * LINE
        return block


def _padded(count: int) -> int:
    return -(-count // LANES) * LANES
