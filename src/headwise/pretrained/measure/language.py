"""Language models: they give a distribution over tokens, and damage is its KL divergence."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.core.errors import InputError
from headwise.pretrained.measure.comparing import (
    Compared,
    Distributions,
    Inputs,
    Pull,
    divergences,
    divergences_and_surprises,
    sampled_labels,
    sampled_pull,
)


class NextToken(Distributions):
    """Decoders, judged at every position that predicts a token of the text."""

    name = "KL divergence from the original's next-token predictions"
    unit = "nats/token"

    def pull(self, outputs: Any, inputs: Inputs, rng: np.random.Generator) -> Pull:
        """Labels drawn from the model's own predictions, at every position."""
        return sampled_pull(outputs.logits, rng)

    def compare(self, original: Any, changed: Any, inputs: Inputs) -> Compared:
        """Divergence, and both losses, summed over the tokens that have one before them."""
        text = inputs.get("decoder_input_ids", inputs.get("input_ids"))
        if text is None:
            raise InputError("a language model is judged by tokens: give its input_ids")
        targets = text.roll(-1, dims=1)  # the last has none; to leave it out would copy the rest
        before, after = (each.logits.flatten(0, 1) for each in (original, changed))
        units = torch.full((len(text),), float(text.shape[1] - 1), device=text.device)
        damage, losses = divergences_and_surprises(before, after, targets.flatten())
        by_token = losses.view(2, *text.shape)[..., :-1]
        return Compared(damage.view_as(text)[:, :-1].sum(1), units, by_token.sum(2))

    def answers(self, outputs: Any, inputs: Inputs) -> Tensor:
        """The predicted distribution of every token that has one before it."""
        return outputs.logits[:, :-1].flatten(0, 1).float().softmax(-1)


class MaskedToken(Distributions):
    """Masked language models, judged where a token was masked, as they were trained.

    Masked positions have a label, as in transformers: −100 elsewhere. Batches without labels are
    judged everywhere.
    """

    name = "KL divergence from the original's predictions of masked tokens"
    unit = "nats/masked token"

    def pull(self, outputs: Any, inputs: Inputs, rng: np.random.Generator) -> Pull:
        """Labels drawn from the model's own predictions, where tokens are masked."""
        logits = self._at_masked(outputs.logits, inputs)
        return Pull(logits, sampled_labels(logits, rng).to(logits.dtype), len(logits))

    def compare(self, original: Any, changed: Any, inputs: Inputs) -> Compared:
        """Divergence, and both losses, summed over masked tokens."""
        masked = self._masked(inputs)
        before, after = (self._at_masked(each.logits, inputs) for each in (original, changed))
        units = masked.sum(1).float()
        if "labels" not in inputs:
            return Compared(_by_sequence(divergences(before, after), masked), units)
        targets = inputs["labels"][masked]
        damage, losses = divergences_and_surprises(before, after, targets)
        by_sequence = torch.stack([_by_sequence(each, masked) for each in losses])
        return Compared(_by_sequence(damage, masked), units, by_sequence)

    def answers(self, outputs: Any, inputs: Inputs) -> Tensor:
        """The predicted distribution of every masked token."""
        return self._at_masked(outputs.logits, inputs).float().softmax(-1)

    @staticmethod
    def _masked(inputs: Inputs) -> Tensor:
        if "labels" in inputs:
            return inputs["labels"] != -100
        return torch.ones_like(inputs["input_ids"], dtype=torch.bool)

    def _at_masked(self, logits: Tensor, inputs: Inputs) -> Tensor:
        """A row a masked token; a ModernBERT with `sparse_prediction` puts out no others."""
        return logits if logits.ndim == 2 else logits[self._masked(inputs)]


def _by_sequence(values: Tensor, masked: Tensor) -> Tensor:
    """Sums over each row's masked positions, whose values come one row after the other."""
    row = masked.nonzero()[:, 0]
    return torch.zeros(len(masked), device=values.device).index_add(0, row, values)
