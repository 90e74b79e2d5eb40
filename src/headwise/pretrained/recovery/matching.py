"""How far a smaller model is from the original inside: block by block, in the damage's own units.

A gradient of the outputs has come through every layer, and what one layer lost is in it as noise
for all others: few texts say little about many weights. What a block puts out is a target nearby.
A change δ of it does a damage of about ½ δᵀFδ, F the second moment there of the gradient that
stands for the damage (`Objective.pull`), so blocks are compared by what the outputs would feel.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.model.earlier import block_around
from headwise.pretrained.text.calibration import spread, to_device

_BATCHES = 12  # to learn the metric from
_LEAST = 0.02  # of the metric's mean: every direction counts that much


class InsideMatch:
    """The mean over blocks of ½ δᵀFδ a token, δ between the two models' outputs of a block."""

    def __init__(
        self,
        original: Any,
        compressed: Any,
        sites: list[AttentionSite],
        objective: Objective,
        batches: list[dict[str, Tensor]],
        seed: int,
    ) -> None:
        self.original, self.compressed, self.objective = original, compressed, objective
        self.blocks = list(dict.fromkeys(block_around(original, site.path) for site in sites))
        self.device = next(original.parameters()).device
        self.roots = self._roots(batches, np.random.default_rng([seed, 5]))

    def __call__(self, batch: dict[str, Tensor]) -> Tensor:
        """Differentiable in the smaller model's weights; what follows the blocks is not run."""
        (inputs,) = to_device([batch], self.device)
        with torch.no_grad():
            wanted = _put_out(self.original, self.blocks, inputs)
        return self._apart(wanted, _put_out(self.compressed, self.blocks, inputs))

    def and_damage(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The same and, as both models are then run to their end, the damage a unit."""
        (inputs,) = to_device([batch], self.device)
        wanted: dict[str, Tensor] = {}
        found: dict[str, Tensor] = {}
        with torch.no_grad(), _watched(self.original, self.blocks, wanted):
            target = self.original(**inputs)
        with _watched(self.compressed, self.blocks, found):
            outputs = self.compressed(**inputs)
        compared = self.objective.compare(target, outputs, inputs)
        return self._apart(wanted, found), compared.damage.sum() / compared.units.sum()

    def _apart(self, wanted: dict[str, Tensor], found: dict[str, Tensor]) -> Tensor:
        apart = [
            ((found[path] - wanted[path]).float() @ root).square().sum(-1).mean() / 2
            for path, root in self.roots.items()
        ]
        return torch.stack(apart).mean()

    def _roots(
        self, batches: list[dict[str, Tensor]], rng: np.random.Generator
    ) -> dict[str, Tensor]:
        """For each block R with R Rᵀ = F."""
        sums: dict[str, Tensor] = {}
        some = spread(batches, _BATCHES)
        for inputs in to_device(some, self.device):
            seen: dict[str, Tensor] = {}
            with torch.enable_grad(), _watched(self.original, self.blocks, seen):
                pull = self.objective.pull(self.original(**inputs), inputs, rng)
            pulled = torch.autograd.grad(
                pull.tensor, list(seen.values()), pull.gradient, allow_unused=True
            )
            for path, gradient in zip(seen, pulled, strict=True):
                if gradient is not None:
                    flat = gradient.float().flatten(0, -2)
                    before = sums.get(path, torch.zeros((), device=flat.device))
                    sums[path] = before + flat.T @ flat / len(flat)
        return {path: _root(total / len(some)) for path, total in sums.items()}


def _root(moment: Tensor) -> Tensor:
    least = _LEAST * moment.diagonal().mean() * torch.eye(len(moment), device=moment.device)
    root: Tensor = torch.linalg.cholesky(moment + least)
    return root


class _EnoughError(Exception):
    """All blocks have put something out."""


def _put_out(model: Any, blocks: list[str], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    seen: dict[str, Tensor] = {}
    with suppress(_EnoughError), _watched(model, blocks, seen, stop=True):
        model(**inputs)
    return seen


@contextmanager
def _watched(
    model: nn.Module, blocks: list[str], seen: dict[str, Tensor], stop: bool = False
) -> Iterator[None]:
    """Keep what blocks put out, as something that has a gradient where gradients are taken."""

    def see(path: str, output: Any) -> Any:
        several = isinstance(output, tuple)
        value = output[0] if several else output
        if torch.is_grad_enabled() and not value.requires_grad:
            value = value.detach().requires_grad_()
        seen[path] = value
        if stop and len(seen) == len(blocks):
            raise _EnoughError
        return (value, *output[1:]) if several else value

    with ExitStack() as stack:
        for path in blocks:
            hook = model.get_submodule(path).register_forward_hook(
                lambda _module, _inputs, output, path=path: see(path, output)
            )
            stack.callback(hook.remove)
        yield
