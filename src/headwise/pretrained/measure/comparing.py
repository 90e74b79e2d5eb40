"""What an objective is: how a change of a model's outputs is weighed, and how to feel for it.

`pull(outputs, inputs, rng)` gives a tensor and a random gradient g to send back from it, so drawn
that E[g gᵀ] = F with ½ δᵀFδ ≈ the damage of a small change δ, summed over `units`. For predictions
F is the Fisher information, by sampling labels from the model itself; for embeddings and
regressions it is a multiple of the identity, by random directions.

Damage is never signed: it is zero where nothing changed and grows with every change. (A rise of
the loss is signed: a model can get better here and worse there, and the sum hides both.)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

Inputs = dict[str, Tensor]
_AT_ONCE = 2**18  # numbers of a block of predictions, which so stays in a cache; same result


class Pull(NamedTuple):
    """Send `gradient` back from `tensor`; the damage it stands for is summed over `units`."""

    tensor: Tensor
    gradient: Tensor
    units: int


class Compared(NamedTuple):
    """Sums by sequence: damage, how many units it is of, and both models' losses if there are."""

    damage: Float[Tensor, " batch"]
    units: Float[Tensor, " batch"]
    losses: Float[Tensor, "2 batch"] | None = None


class Objective(ABC):
    """What a model is for, and so what it means that it got worse."""

    name: ClassVar[str]
    unit: ClassVar[str]

    @abstractmethod
    def pull(self, outputs: Any, inputs: Inputs, rng: np.random.Generator) -> Pull:
        """A random gradient whose second moment is the damage's curvature."""

    @abstractmethod
    def compare(self, original: Any, changed: Any, inputs: Inputs) -> Compared:
        """What lies between two models' outputs for the same inputs; differentiable."""

    def prepare(self, model: Any, batches: list[Inputs]) -> None:
        """Look at the model's outputs once, if the unit of damage depends on them."""
        return

    def state(self) -> dict[str, Tensor]:
        """What `prepare` found, by name."""
        return {}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """What `state` gave, instead of preparing again."""
        return

    def options(self) -> dict[str, Any]:
        """What tells this objective from others of its class."""
        return {}

    def answers(self, outputs: Any, inputs: Inputs) -> Tensor | None:
        """What the model says, a row a unit, as numbers whose mean is the best single answer; None
        where units cannot have one answer."""
        return None

    def content(self, answers: Tensor) -> Float[Tensor, " rows"]:
        """A convex function of an answer, whose Jensen gap is the damage of the mean answer."""
        raise NotImplementedError


class Distributions(Objective):
    """Objectives whose answers are distributions over classes."""

    def content(self, answers: Tensor) -> Tensor:
        """Minus the entropy."""
        return negative_entropy(answers)


class OneForAll:
    """What a model loses if it gives one answer to all inputs: the most that damage can mean.

    For the best single answer ā that is E f(a) − f(ā), with f the objective's `content`: −entropy
    for distributions (then it is the mean divergence from ā), the norm for unit vectors, the square
    for scores.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._sum: Tensor | None = None
        self._content, self._rows = 0.0, 0

    def see(self, outputs: Any, inputs: Inputs) -> None:
        """Add the original's answers to one batch."""
        answers = self._objective.answers(outputs, inputs)
        for block in () if answers is None else _blocks(answers):
            total = block.double().sum(0)
            self._sum = total if self._sum is None else self._sum + total
            self._content += float(self._objective.content(block).double().sum())
            self._rows += len(block)

    @property
    def damage(self) -> float | None:
        """In the objective's unit, a unit; None where there is no single answer."""
        if self._sum is None:
            return None
        mean = (self._sum / self._rows).unsqueeze(0)
        return max(0.0, self._content / self._rows - float(self._objective.content(mean)))


def negative_entropy(probability: Float[Tensor, "*rows classes"]) -> Float[Tensor, "*rows"]:
    """Σ p log p of each row, nats."""
    return torch.special.xlogy(probability, probability).sum(-1)


def divergences(
    original: Float[Tensor, "rows classes"], changed: Float[Tensor, "rows classes"]
) -> Float[Tensor, " rows"]:
    """KL divergence of each row's distribution from the original's, nats; never below zero."""
    pairs = _log_probabilities(original, changed)
    return torch.cat([_divergence(log_p, log_q) for log_p, log_q in pairs])


def divergences_and_surprises(
    original: Float[Tensor, "rows classes"],
    changed: Float[Tensor, "rows classes"],
    targets: Int[Tensor, " rows"],
) -> tuple[Float[Tensor, " rows"], Float[Tensor, "2 rows"]]:
    """The divergences, and −log p(target) of each row by the one and by the other, nats."""
    damage, losses = [], []
    first = 0
    for pair in _log_probabilities(original, changed):
        wanted = targets[first : (first := first + len(pair[0])), None]
        damage.append(_divergence(*pair))
        losses.append(-torch.stack([each.gather(1, wanted)[:, 0] for each in pair]))
    return torch.cat(damage), torch.cat(losses, dim=1)


def _log_probabilities(original: Tensor, changed: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    for p, q in zip(_blocks(original), _blocks(changed), strict=True):
        yield p.float().log_softmax(-1), q.float().log_softmax(-1)


def _divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    return (log_p.exp() * (log_p - log_q)).sum(-1).clamp(min=0)


def _blocks(rows: Tensor) -> tuple[Tensor, ...]:
    return rows.split(max(1, _AT_ONCE // rows.shape[-1]))


@torch.no_grad()
def sampled_labels(
    logits: Float[Tensor, "rows classes"], rng: np.random.Generator
) -> Float[Tensor, "rows classes"]:
    """The gradient p − onehot(y) of −log p(y), y drawn from p by inverting its distribution."""
    probability = logits.detach().float().softmax(-1)
    uniform = torch.from_numpy(rng.random((len(probability), 1), np.float32))
    labels = torch.searchsorted(probability.cumsum(-1), uniform.to(probability.device))
    labels.clamp_(max=probability.shape[-1] - 1)
    return probability.scatter_add_(1, labels, torch.full_like(labels, -1.0, dtype=torch.float32))


def sampled_pull(logits: Tensor, rng: np.random.Generator) -> Pull:
    """A label drawn from the model's own distribution at every position."""
    gradient = sampled_labels(logits.flatten(0, -2), rng)
    return Pull(logits, gradient.view_as(logits).to(logits.dtype), len(gradient))
