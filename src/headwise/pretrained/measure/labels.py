"""Models that put out labels, scores or spans of a text or image.

Several outputs are a distribution (or, for several labels at once, several yes-or-no ones), and
damage is a KL divergence. One output is a number: a divergence over one label would be zero
whatever happens to the model, so the damage is the squared change in units of the spread that the
original's output has over the calibration data.
"""

from math import sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headwise.core.errors import require
from headwise.pretrained.measure.comparing import (
    Compared,
    Distributions,
    Inputs,
    Objective,
    Pull,
    divergences,
    negative_entropy,
    sampled_labels,
    sampled_pull,
)


def _sums(by_row: Tensor, batch: int) -> tuple[Tensor, Tensor]:
    """Damage and units of each sequence, from the damage of each of its predictions."""
    grouped = by_row.view(batch, -1)
    units = torch.full((batch,), float(grouped.shape[1]), device=by_row.device)
    return grouped.sum(1), units


class Prediction(Distributions):
    """Classifiers of sequences, tokens or images: one of several labels."""

    name = "KL divergence from the original's predictions"
    unit = "nats/prediction"

    def pull(self, outputs: Any, inputs: Inputs, rng: np.random.Generator) -> Pull:
        """Labels drawn from the model's own predictions."""
        return sampled_pull(outputs.logits, rng)

    def compare(self, original: Any, changed: Any, inputs: Inputs) -> Compared:
        """Divergence, summed over the predictions of a sequence."""
        before, after = (each.logits.flatten(0, -2) for each in (original, changed))
        return Compared(*_sums(divergences(before, after), len(original.logits)))

    def answers(self, outputs: Any, inputs: Inputs) -> Tensor:
        """The predicted distributions."""
        return outputs.logits.flatten(0, -2).float().softmax(-1)


class MultiLabel(Objective):
    """Classifiers of which several labels may hold: a yes-or-no distribution each."""

    name = "KL divergence from the original's labels, summed over them"
    unit = "nats/prediction"

    def pull(self, outputs: Any, inputs: Inputs, rng: np.random.Generator) -> Pull:
        """Each label drawn from the model's own probability of it."""
        logits = outputs.logits
        probability = logits.detach().float().sigmoid()
        uniform = torch.from_numpy(rng.random(probability.shape, np.float32)).to(probability)
        gradient = probability - (uniform < probability).float()
        return Pull(logits, gradient.to(logits.dtype), logits[..., 0].numel())

    def compare(self, original: Any, changed: Any, inputs: Inputs) -> Compared:
        """Divergence, summed over labels and over the predictions of a sequence."""
        p, q = original.logits.float(), changed.logits.float()
        log = nn.functional.logsigmoid
        yes, no = p.sigmoid() * (log(p) - log(q)), (-p).sigmoid() * (log(-p) - log(-q))
        damage = (yes + no).clamp(min=0).sum(-1)  # rounding alone could take it below
        return Compared(*_sums(damage.flatten(), len(p)))

    def answers(self, outputs: Any, inputs: Inputs) -> Tensor:
        """The labels' probabilities."""
        return outputs.logits.flatten(0, -2).float().sigmoid()

    def content(self, answers: Tensor) -> Tensor:
        """Minus the entropy, summed over labels."""
        return negative_entropy(torch.stack([answers, 1 - answers], dim=-1)).sum(-1)


class Regression(Objective):
    """Scores: cross-encoders, rewards. Damage: mean over outputs of (change / spread)²."""

    name = "squared change of the output, in units of its spread"
    unit = "a score"

    def __init__(self, spread: Tensor | None = None) -> None:
        self.spread = spread

    @torch.no_grad()
    def prepare(self, model: Any, batches: list[Inputs]) -> None:
        """The standard deviation of the original's outputs over the calibration data."""
        device = next(model.parameters()).device
        outputs = []
        for batch in batches:
            logits = model(**{name: value.to(device) for name, value in batch.items()}).logits
            outputs.append(logits.flatten(0, -2).double())
        together = torch.cat(outputs)
        self.spread = together.std(0).float()
        least = 1e-6 * float(together.abs().max())
        require(
            len(together) > 1 and bool((self.spread > least).all()),
            f"{type(model).__name__} puts out the same score for every calibration text: there is "
            "no spread to measure a change by; give texts that it tells apart",
        )

    def state(self) -> dict[str, Tensor]:
        """The spread."""
        return {} if self.spread is None else {"spread": self.spread}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The spread, as it was found."""
        self.spread = tensors["spread"]

    def pull(self, outputs: Any, inputs: Inputs, rng: np.random.Generator) -> Pull:
        """Random directions: (Δ/s)² = ½ δᵀFδ with F = 2/s²."""
        logits = outputs.logits
        directions = torch.from_numpy(rng.standard_normal(logits.shape, np.float32)).to(logits)
        scale = sqrt(2 / logits.shape[-1]) / self._spread(logits)
        return Pull(logits, directions * scale, logits[..., 0].numel())

    def compare(self, original: Any, changed: Any, inputs: Inputs) -> Compared:
        """The squared change, summed over the scores of a sequence."""
        change = (changed.logits.float() - original.logits.float()) / self._spread(changed.logits)
        return Compared(*_sums(change.square().mean(-1).flatten(), len(change)))

    def answers(self, outputs: Any, inputs: Inputs) -> Tensor:
        """The scores, in units of their spread."""
        return outputs.logits.flatten(0, -2).float() / self._spread(outputs.logits)

    def content(self, answers: Tensor) -> Tensor:
        """The square."""
        return answers.square().mean(-1)

    def _spread(self, like: Tensor) -> Tensor:
        assert self.spread is not None
        return self.spread.to(like.device)


class Spans(Objective):
    """Question answering: a distribution over positions for the start and one for the end."""

    name = "KL divergence from the original's start and end positions"
    unit = "nats/position"

    def pull(self, outputs: Any, inputs: Inputs, rng: np.random.Generator) -> Pull:
        """Positions drawn from the model's own predictions."""
        both = torch.cat([outputs.start_logits, outputs.end_logits])
        return Pull(both, sampled_labels(both, rng).to(both.dtype), len(both))

    def compare(self, original: Any, changed: Any, inputs: Inputs) -> Compared:
        """Divergence of the two, summed."""
        start = divergences(original.start_logits, changed.start_logits)
        end = divergences(original.end_logits, changed.end_logits)
        return Compared(start + end, torch.full_like(start, 2.0))
