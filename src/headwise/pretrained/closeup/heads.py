"""What one head does, for a reader to look at: attention on short texts, and its spectrum.

Attention is the model's own, recomputed from queries and keys (see `measure.observe`). A layer is
shown where its queries and keys are the tokens of the text: not where an encoder and a decoder
read different ones.
"""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.measure.observe import Observed, observe
from headwise.pretrained.measure.watch import singular_values
from headwise.pretrained.text.calibration import spread

_TEXTS = 3
_TOKENS = (8, 24)  # of a text, at least and at most
_WEIGHTS = 1_500_000  # attention weights on a page, all heads together


@dataclass(frozen=True)
class AttendedText:
    """A short text and every head's attention on it; a layer that reads something else has none."""

    tokens: list[str]
    weights: dict[int, Float[np.ndarray, "heads t t"]]


@dataclass(frozen=True)
class HeadProfiles:
    """By layer, every head's spectrum (largest 1) and how much it attends at which distances.

    `reach` holds a column a range of distances, whose names are `distances`; of layers whose
    attention leads to another sequence it has no entry.
    """

    spectra: dict[int, Float[np.ndarray, "heads n"]] = field(default_factory=dict)
    reach: dict[int, Float[np.ndarray, "heads ranges"]] = field(default_factory=dict)
    distances: list[str] = field(default_factory=list)
    texts: list[AttendedText] = field(default_factory=list)


def spectra(measurement: Measurement) -> dict[int, Float[np.ndarray, "heads n"]]:
    """Singular values of each head's query–key form, with the activations in it; the largest is 1.

    With RoPE the form is the one at distance zero.
    """
    found = {}
    for layer, (site, reductions) in enumerate(
        zip(measurement.sites, measurement.reductions, strict=True)
    ):
        _, values = singular_values(site, reductions)
        shares = values / values[:, :1].clamp(min=1e-300)
        found[layer] = np.asarray(shares.double().cpu().numpy())
    return found


def attended_texts(
    model: Any, measurement: Measurement, batches: list[dict[str, Tensor]], tokenizer: Any
) -> list[AttendedText]:
    """Every head's attention on the beginnings of a few texts; of images there are none."""
    if "input_ids" not in batches[0] or getattr(model.config, "is_encoder_decoder", False):
        return []
    heads = sum(site.heads for site in measurement.sites)
    least, most = _TOKENS
    length = int(min(most, max(least, sqrt(_WEIGHTS / (_TEXTS * heads)))))
    longest = sorted(batches, key=lambda batch: -batch["input_ids"].shape[1])
    return [_attended(model, measurement, batch, length, tokenizer) for batch in spread(longest, 3)]


def _attended(
    model: Any,
    measurement: Measurement,
    batch: dict[str, Tensor],
    length: int,
    tokenizer: Any,
) -> AttendedText:
    short = {name: value[:1, :length] for name, value in batch.items()}
    ids = short["input_ids"][0].tolist()
    weights: dict[int, Float[np.ndarray, "heads t t"]] = {}

    def look(layer: int, seen: Observed) -> None:
        attention = seen.scores().softmax(-1)[0].cpu().numpy()
        if not seen.site.cross and attention.shape[1:] == (len(ids), len(ids)):
            weights[layer] = attention

    observe(model, measurement.sites, [short], look)
    return AttendedText(_named(ids, tokenizer), weights)


def _named(ids: list[int], tokenizer: Any) -> list[str]:
    """Each token as text; its number where there is no tokenizer, or no text."""
    if tokenizer is None:
        return [str(number) for number in ids]
    texts = [str(tokenizer.decode([number])) for number in ids]
    return [text.strip() or repr(text)[1:-1] for text in texts]
