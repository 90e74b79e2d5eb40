"""Which token each head looks at, as a table."""

import pandas as pd

from headwise.nets import ClassTokenNet
from headwise.tasks import Retrieval
from headwise.theory.checks import whole


def attention_rows(
    net: ClassTokenNet, task: Retrieval, sequences: int, seed: int = 0
) -> pd.DataFrame:
    """One row a sequence, head and position: the attention, and whether the target picks it."""
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
            for h in range(weights.shape[2])
            for t in range(task.length)
        ]
    )
