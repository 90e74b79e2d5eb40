"""Data for training: where they come from, their scale, and the order in which they are seen."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.core.errors import require
from headwise.nets.pooled import SequenceNetShape
from headwise.tasks.protocols import SequenceTask
from headwise.training.samples.engine import Dataset
from headwise.training.samples.specification import Loss

# The last entry of a seed says what the stream is for, so that no two uses share one.
_TRAIN, _VALIDATION, _FRESH, _ORDER = 1, 2, 3, 4


@dataclass(frozen=True)
class DataScale:
    """Mean and standard deviation of token coordinates and of targets, over the training data."""

    input_mean: Float[Tensor, " token_dim"]
    input_std: Float[Tensor, " token_dim"]
    target_mean: Float[Tensor, " outputs"]
    target_std: Float[Tensor, " outputs"]

    @classmethod
    def of(
        cls,
        inputs: Float[Tensor, "count length token_dim"],
        targets: Float[Tensor, "count outputs"],
        loss: Loss,
    ) -> "DataScale":
        """The scale of the data; class probabilities keep theirs."""
        require(
            bool(torch.isfinite(inputs).all()) and bool(torch.isfinite(targets).all()),
            "the data hold NaN or infinite values",
        )
        rows = inputs.flatten(0, 1).double()
        values = targets.double()
        require(
            bool((values.var(0) > 0).all()), "the target is constant: there is nothing to learn"
        )
        spread = rows.std(0)
        spread = torch.where(spread > 0, spread, torch.ones_like(spread))
        if loss == "cross-entropy":
            unit = torch.ones_like(values[0])
            return cls(rows.mean(0), spread, 0 * unit, unit)
        return cls(rows.mean(0), spread, values.mean(0), values.std(0))

    def apply(
        self,
        inputs: Float[Tensor, "count length token_dim"],
        targets: Float[Tensor, "count outputs"],
    ) -> Dataset:
        """The data in standard units."""
        scaled_inputs = (inputs.double() - self.input_mean) / self.input_std
        scaled_targets = (targets.double() - self.target_mean) / self.target_std
        return Dataset(scaled_inputs.float(), scaled_targets.float())

    def fold_into(self, shape: SequenceNetShape, params: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights of the network that takes raw tokens and returns raw targets."""
        folded = {name: value.double() for name, value in params.items()}
        first, last = "embed.0", f"readout.{len(shape.readout.widths)}"
        folded[f"{first}.weight"] = folded[f"{first}.weight"] / self.input_std
        folded[f"{first}.bias"] = (
            folded[f"{first}.bias"] - folded[f"{first}.weight"] @ self.input_mean
        )
        folded[f"{last}.weight"] = folded[f"{last}.weight"] * self.target_std[:, None]
        folded[f"{last}.bias"] = folded[f"{last}.bias"] * self.target_std + self.target_mean
        return {name: value.float() for name, value in folded.items()}


@lru_cache(maxsize=2)
def load(
    task: SequenceTask, samples: int, validation: int, data_seed: int, loss: Loss
) -> tuple[Dataset, Dataset, DataScale]:
    """Training set, validation set and their scale; kept, since many seeds use the same."""
    inputs, targets = _draw(task, samples, (data_seed, _TRAIN))
    scale = DataScale.of(inputs, targets, loss)
    return (
        scale.apply(inputs, targets),
        scale.apply(*_draw(task, validation, (data_seed, _VALIDATION))),
        scale,
    )


def fresh(
    task: SequenceTask, scale: DataScale, count: int, data_seed: int, seed: int, block: int
) -> Dataset:
    """Block number `block` of the endless stream that belongs to `seed` alone."""
    return scale.apply(*_draw(task, count, (data_seed, seed, block, _FRESH)))


def epoch_order(
    samples: int, batch: int, seed: int, first: int, last: int
) -> Int[np.ndarray, "steps batch"]:
    """Rows for steps first ≤ s < last: every epoch is a new permutation, short batches dropped."""
    per_epoch = samples // batch
    epochs = range(first // per_epoch, (last - 1) // per_epoch + 1)
    rows = [
        np.random.default_rng([seed, epoch, _ORDER]).permutation(samples)[: per_epoch * batch]
        for epoch in epochs
    ]
    steps = np.concatenate(rows).reshape(-1, batch)
    skipped = first - epochs.start * per_epoch
    return steps[skipped : skipped + last - first].astype(np.int64)


def _draw(
    task: SequenceTask, count: int, seed: tuple[int, ...]
) -> tuple[Float[Tensor, "count length token_dim"], Float[Tensor, "count outputs"]]:
    inputs, targets = task.sample(count, seed)
    return inputs, targets if targets.dim() == 2 else targets.unsqueeze(1)
