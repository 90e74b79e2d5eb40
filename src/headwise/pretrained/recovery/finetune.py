"""A short recovery: train the smaller model to give the original's outputs again.

Every weight is trained but the tables of embeddings and the layer that reads tokens from them: what
attention lost, the layers behind it can make up for, and no weight is added.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.measure.objectives import Embedding
from headwise.pretrained.recovery.looks import Best, set_aside
from headwise.pretrained.recovery.matching import InsideMatch
from headwise.pretrained.text.calibration import to_device
from headwise.pretrained.text.lessons import in_small_steps, lessons_for

CHECKS = 10  # looks at the batches kept aside
_INSIDE = 0.8  # of the steps match blocks alone, where a vocabulary makes outputs cost more
_RATE, _EMBEDDING_RATE = 1.5e-3, 1.2e-3
# Blocks against the damage at the start of what embeddings are trained by; it falls to nothing. An
# embedding is one vector a text, blocks put out one a token: a step tells more by them.
_BLOCKS = 7.0
_BETAS = (0.9, 0.99)  # a short training forgets early gradients soon


def recover(
    compressed: Any,
    original: Any,
    sites: list[AttentionSite],
    objective: Objective,
    batches: list[dict[str, Tensor]],
    steps: int,
    *,
    seed: int = 0,
    on_progress: OnProgress = quiet,
) -> list[float]:
    """Adam, on what the original's blocks put out and on what it does; the loss by step.

    A step changes a weight by about a rate times the matrices' usual weight. A short text is soon
    overfitted, so no batch is read more than twice where the original can write others. Some
    batches are kept aside and looked at. A high rate makes it worse for a while and better in the
    end, when it falls; where it is far worse, or worse at two looks in a row, training goes on from
    the best weights at half the rate. The best ones stay, the first if nothing does better.
    """
    training, aside = set_aside(batches)
    parameters = _trained(compressed, sites)
    trainable = {id(parameter) for parameter in parameters}
    for parameter in compressed.parameters():
        parameter.requires_grad_(id(parameter) in trainable)
    embeds = isinstance(objective, Embedding)
    training = in_small_steps(training) if embeds else training
    rate = (_EMBEDDING_RATE if embeds else _RATE) * _usual_weight(parameters)
    optimiser = torch.optim.Adam(parameters, lr=rate, betas=_BETAS)
    lessons = lessons_for(objective, original, training, steps, seed)
    inside = InsideMatch(original, compressed, sites, objective, training, seed)
    weight = _BLOCKS * _counting_alike(inside, aside) if embeds else 0.0
    losses = []
    best = Best(parameters)

    def look() -> bool:
        with torch.no_grad():
            return best.see(float(_mismatch_on(objective, original, compressed, aside)))

    def mismatch(batch: dict[str, Tensor], step: int) -> Tensor:
        if embeds:
            apart, damage = inside.and_damage(batch)
            return damage + weight * (1 - step / steps) ** 2 * apart
        if step < _INSIDE * steps:
            return inside(batch)
        return _mismatch_on(objective, original, compressed, [batch])

    look()
    for step in range(steps):
        warm_up = min(1.0, (step + 1) / max(1.0, 0.1 * steps))
        optimiser.param_groups[0]["lr"] = rate * warm_up * (1 - step / steps)
        batch = next(lessons)
        with torch.enable_grad():
            loss = mismatch(batch, step)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        losses.append(float(loss.detach()))
        looks = (step + 1) % max(1, steps // CHECKS) == 0 or step + 1 == steps
        if looks and not look():
            best.restore()
            optimiser.state.clear()
            rate /= 2
        on_progress((step + 1) / steps, "recovering")
    best.restore()
    compressed.requires_grad_(True)
    return losses


@torch.no_grad()
def _counting_alike(inside: InsideMatch, batches: list[dict[str, Tensor]]) -> float:
    """How many times what lies between the blocks is the damage."""
    pairs = [inside.and_damage(batch) for batch in batches]
    apart, damage = (float(torch.stack(each).sum()) for each in zip(*pairs, strict=True))
    return damage / apart if apart > 0 else 0.0


def _mismatch_on(
    objective: Objective, original: Any, compressed: Any, batches: list[dict[str, Tensor]]
) -> Tensor:
    """The mean over batches."""
    device = next(original.parameters()).device
    losses = []
    for inputs in to_device(batches, device):
        with torch.no_grad():
            target = original(**inputs)
        compared = objective.compare(target, compressed(**inputs), inputs)
        losses.append(compared.damage.sum() / compared.units.sum())
    return torch.stack(losses).mean()


def _usual_weight(parameters: list[nn.Parameter]) -> float:
    """The median over matrices of the root mean square."""
    sizes = [p.detach().float().square().mean().sqrt() for p in parameters if p.ndim > 1]
    return float(torch.stack(sizes).median())


def _trained(model: nn.Module, sites: list[AttentionSite]) -> list[nn.Parameter]:
    """Attention, biases of positions in it included, and what is no table of embeddings."""
    reading = getattr(model, "get_output_embeddings", lambda: None)()
    tables = [each for each in model.modules() if isinstance(each, nn.Embedding) or each is reading]
    left = {id(parameter) for table in tables for parameter in table.parameters()}
    left -= {id(parameter) for parameter in _attention(model, sites)}
    return [parameter for parameter in model.parameters() if id(parameter) not in left]


def _attention(model: nn.Module, sites: list[AttentionSite]) -> Iterator[nn.Parameter]:
    for site in sites:
        yield from model.get_submodule(site.path).parameters()
        if not site.output_inside:
            yield from model.get_submodule(site.output).parameters()
