"""Sequences put together from parts of others, as the tests for extrema compare them."""

import numpy as np
from jaxtyping import Bool, Float

FEW = 32  # sequences without which a test says nothing
_ALWAYS = 0.9  # a position that matters in this share of the sequences is read for itself
_MOST_READ = 2  # more positions read for themselves may be a sum over them, which one head does
_SEEN = 16  # sequences in which a position must matter to say what it matters with
_ENOUGH = 256  # pairs that are compared
_SHIFTS = 8  # neighbours that a sequence is compared with

Pair = tuple[np.ndarray, np.ndarray]
"""Two batches whose values are to be the same."""


def crowds_of(
    inputs: Float[np.ndarray, "count length dim"],
    matters: Bool[np.ndarray, "count length"],
    permutations: bool,
    rng: np.random.Generator,
) -> Float[np.ndarray, "count length dim"]:
    """Sequences of tokens that mattered elsewhere; a place where none did keeps what it had."""
    count, length, _ = inputs.shape
    crowds = inputs.copy()
    pool = inputs[matters]
    if permutations and len(pool):
        for row in range(count):
            chosen = rng.permutation(len(pool))[:length]
            crowds[row, : len(chosen)] = pool[chosen]
        return crowds
    for place in range(length):
        rows = np.flatnonzero(matters[:, place])
        if len(rows):
            crowds[:, place] = inputs[rng.choice(rows, count), place]
    return crowds


def merged(
    inputs: np.ndarray, matters: Bool[np.ndarray, "count length"], permutations: bool
) -> Pair | None:
    """Each sequence with others, where their influential tokens do not overlap.

    Where the order does not matter, those of the one come first and those of the other last.
    """
    others, theirs = np.roll(inputs, 1, 0), np.roll(matters, 1, 0)
    if permutations:
        (inputs, matters), (others, theirs) = (
            _sorted(inputs, matters, 1),
            _sorted(others, theirs, 0),
        )
    always = matters.mean(0) > _ALWAYS if not permutations else np.zeros(inputs.shape[1], bool)
    if always.sum() > _MOST_READ:
        return None
    pairs = []
    for shift in range(_SHIFTS):
        other, its = np.roll(others, shift, 0), np.roll(theirs, shift, 0)
        fits = ~(matters & its & ~always).any(1) & (matters | its).any(1)
        mine = matters | always  # what X keeps, and Y gets
        here = np.where((its & ~mine)[..., None], other, inputs)[fits]
        pairs.append((here, np.where(mine[..., None], inputs, other)[fits]))
        if sum(len(first) for first, _ in pairs) >= _ENOUGH:
            break
    here, there = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return (here, there) if len(here) >= FEW else None


def read_together(matters: Bool[np.ndarray, "count length"]) -> float:
    """The share of positions that hardly ever matter without a certain other one.

    Positions that always matter are no company: first · last token are two that are read apart.
    """
    times = matters.sum(0)
    seen = (times >= _SEEN) & (matters.mean(0) <= _ALWAYS)
    if not seen.any():
        return 0.0
    along = (matters.T.astype(float) @ matters)[np.ix_(seen, seen)] / times[seen, None]
    np.fill_diagonal(along, 0.0)
    return float((along.max(1) > _ALWAYS).mean())


def _sorted(inputs: np.ndarray, matters: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens in another order: those that matter first, or last."""
    order = np.argsort(matters ^ bool(first), axis=1, kind="stable")
    return np.take_along_axis(inputs, order[..., None], 1), np.take_along_axis(matters, order, 1)


def repeated(inputs: np.ndarray, matters: np.ndarray, rng: np.random.Generator) -> Pair | None:
    """Sequences, and the same of copies of the tokens that matter in them alone."""
    some = matters.any(1)
    return _with_copies(inputs[some], matters[some], matters[some], rng, False)


def dropped(inputs: np.ndarray, matters: np.ndarray, rng: np.random.Generator) -> Pair | None:
    """Sequences, and the same with one token in place of all that do not matter."""
    some = ~matters.all(1)
    return _with_copies(inputs[some], matters[some], ~matters[some], rng, True)


def doubled(inputs: np.ndarray, matters: np.ndarray, rng: np.random.Generator) -> Pair | None:
    """Half of the other tokens become copies of a token that matters; or of one that does not."""
    some = matters.any(1) & ((~matters).sum(1) >= 2)
    inputs, matters = inputs[some], matters[some]
    if len(inputs) < FEW:
        return None
    order = np.where(matters, 2.0, rng.random(matters.shape))  # tokens that matter come last
    gone = order.argsort(1).argsort(1) < np.maximum((~matters).sum(1, keepdims=True) // 2, 1)
    versions = []
    for sources in (matters, ~matters & ~gone):
        chosen = (rng.random(matters.shape) * sources).argmax(1)
        copies = inputs[np.arange(len(inputs)), chosen][:, None]
        versions.append(np.where(gone[..., None], copies, inputs))
    return versions[0], versions[1]


def _with_copies(
    inputs: np.ndarray,
    matters: np.ndarray,
    sources: np.ndarray,
    rng: np.random.Generator,
    single: bool,
) -> Pair | None:
    """Every token that does not matter becomes a copy of a source: one for all, or any."""
    if len(inputs) < FEW:
        return None
    count, length, _ = inputs.shape
    draws = rng.random((count, 1 if single else length, length)) * sources[:, None]
    chosen = np.broadcast_to(draws.argmax(-1), (count, length))
    copies = np.take_along_axis(inputs, chosen[..., None], 1)
    return np.where(matters[..., None], inputs, copies), inputs
