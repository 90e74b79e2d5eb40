"""The networks that are compared: heads of every variant, and models without heads."""

from collections.abc import Iterable, Sequence
from itertools import product

from headwise.lab.run import Run
from headwise.nets import AttentionShape, DecoderShape, PooledShape
from headwise.nets.sequence import Convolutions, Recurrence, SetPooling, StateSpace
from headwise.studies.variants.directions import DIRECTIONS
from headwise.tasks import Affine, Induction, Neighbours, Retrieval
from headwise.training import Streaming, Training

TOKEN_DIM = 6
MIXED = 8  # heads of a mixture, of which some are active
BANDS = 2
WITHOUT_HEADS = ("GRU", "convolution", "state space", "max pooling", "mean pooling")


def has_heads(model: str) -> bool:
    """Is it a variant of a head?"""
    return model not in WITHOUT_HEADS


def is_plain_or_without_heads(model: str) -> bool:
    """Is it plain heads, or a model that has none?"""
    return model == "plain" or not has_heads(model)


def retrieval(length: int, dim: int, parts: bool = False) -> Retrieval:
    """Σ_i max_t ⟨a_i, x(t)⟩ with orthonormal a_i, over all t or, with `parts`, over t in S_i.

    S_i is the half of the sequence that starts at i·T/4 and goes on at the beginning.
    """
    features = Affine(weights=DIRECTIONS[dim])
    if not parts:
        return Retrieval(features=features, length=length)
    starts = [index * (length // 4) for index in range(dim)]
    halves = [tuple(sorted((s + t) % length for t in range(length // 2))) for s in starts]
    return Retrieval(features=features, length=length, subsets=tuple(halves))


def heads_of(variant: str, counts: Iterable[int], positions: int = 0) -> list[PooledShape]:
    """The head-count paper's network with heads of a variant, for each number of active heads.

    Heads are added as a variant takes them: banded ones a head a band, grouped ones a head a
    group; of a mixture's MIXED heads one is shared and the others are routed.
    """
    nets = []
    for count in counts:
        named, total = variant, count
        if variant == "mixture":
            named, total = f"mixture:1:{count - 1}", MIXED
        nets.append(
            PooledShape.of_heads(
                token_dim=TOKEN_DIM, heads=total, variant=named, positions=positions
            )
        )
    return nets


def recurrences(states: Iterable[int]) -> list[PooledShape]:
    """GRUs with so many numbers of state."""
    return [_without_heads(Recurrence(state=state), 16) for state in states]


def convolutions(channels: Iterable[int], length: int) -> list[PooledShape]:
    """Convolutions whose last token sees the whole sequence."""
    return [_without_heads(Convolutions.reaching(length), each) for each in channels]


def state_spaces(states: Iterable[int]) -> list[PooledShape]:
    """Two diagonal state-space layers on 16 channels."""
    return [_without_heads(StateSpace(state=state), 16) for state in states]


def sets(kind: str, channels: Iterable[int]) -> list[PooledShape]:
    """The maximum or mean of so many channels."""
    return [_without_heads(SetPooling(kind=kind), each) for each in channels]  # type: ignore[arg-type]


def _without_heads(
    pooling: Recurrence | Convolutions | StateSpace | SetPooling, dim: int
) -> PooledShape:
    return PooledShape.standard(token_dim=TOKEN_DIM, pooling=pooling, embed_dim=dim)


def pooled_runs(
    task: Retrieval, nets: Iterable[PooledShape], training: Training, seeds: int
) -> list[Run]:
    """Every network on the task, all seeds."""
    return [
        Run(kind="pooled", task=task, net=net, training=training, seed=seed)
        for net, seed in product(nets, range(seeds))
    ]


def neighbour_decoder(variant: str, dim: int, heads: int, rank: int) -> DecoderShape:
    """One layer that answers with the nearest point; values of full dimension."""
    layer = AttentionShape(heads=heads, qk_dim=rank, v_dim=dim)
    return DecoderShape(
        vocabulary=0, token_dim=dim, outputs=dim, width=2 * dim, layers=(layer,), ffn=0,
        length=dim + 1, positions="none", attention=variant,
    )  # fmt: skip


def nearest(dim: int) -> Neighbours:
    """Which of `dim` points on the sphere is nearest to the last?"""
    return Neighbours(dim=dim, points=dim)


def induction_decoder(variant: str, task: Induction, layers: int) -> DecoderShape:
    """Two heads a layer, learned positions."""
    layer = AttentionShape(heads=2, qk_dim=8, v_dim=8)
    return DecoderShape(
        vocabulary=0, token_dim=task.symbols, outputs=task.symbols, width=32,
        layers=(layer,) * layers, ffn=32, length=task.length, attention=variant,
    )  # fmt: skip


def decoder_runs(
    task: Neighbours | Induction,
    nets: Sequence[DecoderShape],
    training: Streaming,
    seeds: int,
) -> list[Run]:
    """Every decoder on the task, all seeds."""
    return [
        Run(kind="token-decoder", task=task, net=net, training=training, seed=seed)
        for net, seed in product(nets, range(seeds))
    ]
