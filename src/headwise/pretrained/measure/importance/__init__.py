"""What removing a head costs: its context is replaced by its mean, all else as it is.

Measured, one head after the other (`removal`), or estimated. Texts differ in which heads they need,
so an estimate is the geometric mean of two: one from gradients over the calibration data, which the
measurement holds, and one over the text that is to judge. The latter is of gradients, too
(`promises`); but a language model of few heads tells more, for the same work, by trying each of
them on a few sentences.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.measure.comparing import Inputs
from headwise.pretrained.measure.importance.promises import promised_losses
from headwise.pretrained.measure.importance.removal import (
    Removals,
    all_heads,
    rank_correlation,
    removal_losses,
    tried_losses,
)
from headwise.pretrained.measure.language import NextToken
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.text.calibration import few_tokens, token_count

__all__ = [
    "Removals",
    "all_heads",
    "estimated_losses",
    "promised_losses",
    "rank_correlation",
    "removal_losses",
    "tried_losses",
]

_PROMISED = (4096, 1024)  # tokens, and the longest input
_PASSES = 20_000  # tokens that are read again, once without each head, if that is to be tried
_LEAST, _LENGTH = 384, 128  # tokens that tell enough, in inputs of so many


def estimated_losses(
    model: Any,
    measurement: Measurement,
    held_out: list[Inputs],
    on_progress: OnProgress = quiet,
) -> Float[np.ndarray, " heads"]:
    """Every head's loss, estimated on the calibration data and on some of these batches."""
    calibrated = np.concatenate([curves.removal for curves in measurement.curves])
    heads = all_heads(measurement)
    tokens = min(_PROMISED[0], _PASSES // len(heads))
    if tokens >= _LEAST and isinstance(measurement.objective, NextToken):
        few = few_tokens(held_out, tokens, _LENGTH)
        if token_count(few) >= _LEAST:
            return np.sqrt(calibrated * tried_losses(model, measurement, few, heads, on_progress))
    some = few_tokens(held_out, *_PROMISED)
    return np.sqrt(calibrated * promised_losses(model, measurement, some, on_progress))
