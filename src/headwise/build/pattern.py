"""Which token each head looks at, as a table."""

import pandas as pd

from headwise.build.built import Built

_SEQUENCES = 3


def attention_rows(built: Built, seed: int = 0, sequences: int = _SEQUENCES) -> pd.DataFrame:
    """One row a sequence, head and position: the attention, and whether the target picks it."""
    task = built.task
    inputs = task.sample(sequences, seed=(seed, 0xA11))[0].double()
    weights = built.net.attention_weights(inputs)  # (sequences, length, heads)
    picked = task.retrieve(inputs)[1]  # (sequences, features)
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
