"""Which token each head looks at, as a table."""

import pandas as pd
from jaxtyping import Float, Int
from torch import Tensor

from headwise.nets import ClassTokenNet
from headwise.tasks import Retrieval
from headwise.theory.checks import whole

_SHOWN_WHOLE = 512  # positions; of longer sequences only those that matter are in the table
_EACH = 16  # positions that a head attends to most


def attention_rows(
    net: ClassTokenNet, task: Retrieval, sequences: int, seed: int = 0
) -> pd.DataFrame:
    """One row a sequence, head and position: the attention, and whether the target picks it.

    Of sequences longer than 512 tokens only the positions that a head attends to most, and those
    that the target picks: nobody looks at a million others.
    """
    sequences, seed = whole("sequences", sequences), whole("seed", seed, least=0)
    inputs = task.sample(sequences, seed=(seed, 0xA11))[0].to(next(net.parameters()).dtype)
    weights = net.attention_weights(inputs)  # (sequences, length, heads)
    picked = task.retrieve(inputs.double())[1]  # (sequences, features)
    one_each = weights.shape[2] >= task.intrinsic_dim
    return pd.DataFrame(
        [
            {
                "sequence": f"sequence {s + 1}",
                "head": h + 1,
                "position": t,
                "weight": float(weights[s, t, h]),
                "wanted": one_each and h < task.intrinsic_dim and int(picked[s, h]) == t,
            }
            for s in range(sequences)
            for kept in [_positions(weights[s], picked[s])]
            for h in range(weights.shape[2])
            for t in kept
        ]
    )


def _positions(
    weights: Float[Tensor, "length heads"], picked: Int[Tensor, " features"]
) -> list[int]:
    """The positions of a sequence that are in the table, in order."""
    if len(weights) <= _SHOWN_WHOLE:
        return list(range(len(weights)))
    most = weights.topk(_EACH, dim=0).indices.flatten()
    return sorted({*most.tolist(), *picked.tolist()})
