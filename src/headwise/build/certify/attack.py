"""Trying to break a certificate: random, corner, near-tie and gradient-guided inputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.build.maps.sampling import Box
from headwise.core.errors import require
from headwise.core.progress import Deadline, OnProgress
from headwise.core.shown import Printed
from headwise.nets import ClassTokenNet
from headwise.tasks.retrieval import Retrieval
from headwise.theory.checks import positive, whole

_FLOATS = 1 << 22  # held at once by a hidden layer
_STEPS = 40  # of gradient ascent, each round
_MOST = 256  # inputs of a kind in a round
_KEPT = 16  # starts of the ascent
_CLEAR = 12.0  # gaps by which a clear winner leads
_WORK = 2e8  # multiplications that a kind of input may take in a round


@dataclass(frozen=True)
class Check(Printed):
    """The worst of some inputs; truthy if its error is within the certified one."""

    worst: float
    certified: float
    inputs: Float[Tensor, "length dim"]

    @property
    def holds(self) -> bool:
        """Is the worst error within the certified one?"""
        return self.worst <= self.certified

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return (
            f"worst error found: {self.worst:.4e}, {100 * self.worst / self.certified:.1f} % of "
            f"the certified {self.certified:.4e}"
        )


@dataclass(frozen=True)
class Attack(Check):
    """The worst input that a search found, and the worst error of each kind of input."""

    by_kind: dict[str, float]
    tried: int
    rounds: int

    def to_data(self) -> dict[str, Any]:
        """What was found, as JSON data."""
        return {"worst_found": self.worst, "inputs_tried": self.tried, "by_kind": self.by_kind}

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {error:.3e}" for kind, error in self.by_kind.items())
        return f"{super().__str__()} ({self.tried:,} inputs; {kinds})"


def errors(
    net: ClassTokenNet, task: Retrieval, inputs: Float[Tensor, "count length dim"]
) -> Float[Tensor, " count"]:
    """|network − target|, differentiable; tokens are rounded to what the network reads."""
    read = inputs.to(next(net.parameters()).dtype)
    return (net(read).squeeze(1).double() - task.oracle(read.double())).abs()


def measure(
    net: ClassTokenNet,
    task: Retrieval,
    inputs: Float[Tensor, "count length dim"],
    certified: float,
) -> Check:
    """The worst of `inputs`, computed in blocks of bounded memory."""
    require(len(inputs) > 0, "there are no samples to check")
    return _worst(_errors_in_blocks(net, task, inputs), inputs, certified)


def _errors_in_blocks(
    net: ClassTokenNet, task: Retrieval, inputs: Float[Tensor, "count length dim"]
) -> Float[Tensor, " count"]:
    with torch.no_grad():
        return torch.cat([errors(net, task, rows) for rows in inputs.split(_block(task, net))])


def _worst(found: Float[Tensor, " count"], inputs: Tensor, certified: float) -> Check:
    worst = int(found.argmax())
    return Check(float(found[worst]), certified, inputs[worst].clone())


def search(
    net: ClassTokenNet,
    task: Retrieval,
    box: Box,
    tie_gaps: Sequence[float],
    certified: float,
    seconds: float,
    seed: int,
    rounds: int | None,
    on_progress: OnProgress,
) -> Attack:
    """Rounds of every kind of input until the time is over, or a given number of rounds.

    The clock is looked at between kinds and between steps of the ascent: however long a sequence
    is, no more is begun after the time than the first inputs of all.
    """
    seconds, seed = positive("seconds", seconds), whole("seed", seed, least=0)
    rounds = None if rounds is None else whole("rounds", rounds)
    deadline, done = Deadline.after(seconds) if rounds is None else Deadline(), 0
    found = _Found(net, task, certified)
    while done < rounds if rounds is not None else done == 0 or not deadline.passed:
        count = int(min(max(1, _WORK / _work(task, net)), _MOST))
        made = (
            ("near-tie", lambda rng: _near_ties(task, box, tie_gaps, rng, count)),  # noqa: B023
            ("random", lambda rng: _random(task, box, rng, count)),  # noqa: B023
            ("corner", lambda rng: _corners(task, box, rng, count)),  # noqa: B023
        )
        starts = []
        for number, (kind, make) in enumerate(made):
            if found.best is None or not deadline.passed:
                inputs = make(np.random.default_rng([seed, done, number, 0xA77]))
                starts.append((inputs, found.look(kind, inputs)))
        if not deadline.passed:
            rng = np.random.default_rng([seed, done, len(made), 0xA77])
            climbed = _ascend(net, task, box, starts, rng, deadline)
            found.look("gradient", climbed)
        done += 1
        on_progress(done / rounds if rounds else 1 - deadline.left / seconds, "attack")
    assert found.best is not None
    best = found.best
    return Attack(best.worst, certified, best.inputs, found.by_kind, found.tried, done)


class _Found:
    """The worst of all inputs looked at, and of each kind."""

    def __init__(self, net: ClassTokenNet, task: Retrieval, certified: float) -> None:
        self.net, self.task, self.certified = net, task, certified
        self.best: Check | None = None
        self.by_kind: dict[str, float] = {}
        self.tried = 0

    def look(self, kind: str, inputs: Float[Tensor, "count length dim"]) -> Tensor:
        """The errors of these inputs."""
        errors_of = _errors_in_blocks(self.net, self.task, inputs)
        check = _worst(errors_of, inputs, self.certified)
        self.by_kind[kind] = max(self.by_kind.get(kind, 0.0), check.worst)
        self.tried += len(inputs)
        if self.best is None or check.worst > self.best.worst:
            self.best = check
        return errors_of


def _random(
    task: Retrieval, box: Box, rng: np.random.Generator, count: int
) -> Float[Tensor, "count length dim"]:
    """The task's own distribution, cut off at the box."""
    shape = (count, task.length, task.token_dim)
    drawn = rng.standard_normal(shape) if task.inputs == "gaussian" else rng.random(shape)
    return torch.from_numpy(np.clip(drawn, box.low, box.high))


def _corners(
    task: Retrieval, box: Box, rng: np.random.Generator, count: int
) -> Float[Tensor, "count length dim"]:
    """Every coordinate at an end of the box; in half the sequences most tokens are equal."""
    shape = (count, task.length, task.token_dim)
    upper = rng.random(shape) < 0.5
    alike = np.arange(count) % 2 == 0
    same = (rng.random(shape[:2]) < 0.9) & alike[:, None]
    upper = np.where(same[..., None], upper[:, :1], upper)
    return torch.from_numpy(np.where(upper, box.high, box.low))


def _near_ties(
    task: Retrieval, box: Box, gaps: Sequence[float], rng: np.random.Generator, count: int
) -> Float[Tensor, "count length dim"]:
    """One token is best for feature i, all others are worse by a gap at which softmax errs most.

    About a base token x the tokens are x + J⁺·(wanted changes of the features), J the features'
    Jacobian at x; a pseudo-inverse does what it can where the features outnumber the coordinates.
    Errors of one sign add up, so in two thirds of the sequences only the features that push the
    outer map one way are near a tie; the others have a clear winner.
    """
    dims, length = task.intrinsic_dim, task.length
    width = (box.high - box.low) * 0.25
    middle = (box.low + box.high) / 2
    base = torch.from_numpy(
        middle + np.clip(rng.standard_normal((count, task.token_dim)), -2, 2) * np.minimum(width, 1)
    )
    wide = np.array(gaps) if len(gaps) == dims else np.full(dims, 0.05)
    scale = np.where(np.arange(count) % 2 == 0, 1.0, 10 ** rng.uniform(-1, 1, count))
    pushes = (_outer_slopes(task, base) * np.array(task.signs)) > 0  # (count, features)
    rows = np.arange(count)
    clear = (rows[:, None] % 3 > 0) & (pushes == (rows[:, None] % 3 == 1))
    wanted = np.zeros((count, length, dims))
    inside = task.membership.numpy()
    for feature, sign in enumerate(task.signs):
        winners = rng.choice(np.flatnonzero(inside[:, feature]), count)
        lead = np.where(clear[:, feature], _CLEAR, scale) * wide[feature]
        wanted[rows, winners, feature] = sign * lead
    moves = torch.from_numpy(wanted) @ torch.linalg.pinv(_jacobian(task, base)).mT
    low, high = (torch.from_numpy(side) for side in box)
    return (base.unsqueeze(1) + moves).clamp(low, high)


def _jacobian(
    task: Retrieval, base: Float[Tensor, "count dim"]
) -> Float[Tensor, "count features dim"]:
    """Derivatives of the features at the base tokens; zero for a function without any."""
    tokens = base.detach().requires_grad_(True)
    features = task.features(tokens)
    if not features.requires_grad:
        return base.new_zeros(len(base), task.intrinsic_dim, task.token_dim)
    rows = [
        torch.autograd.grad(each.sum(), tokens, retain_graph=True, materialize_grads=True)[0]
        for each in features.unbind(1)
    ]
    return torch.stack(rows, 1)


def _outer_slopes(task: Retrieval, base: Float[Tensor, "count dim"]) -> np.ndarray:
    """The outer map's gradient at the features of the base tokens."""
    features = task.features(base).detach().requires_grad_(True)
    outer = task.outer(features)
    if not outer.requires_grad:
        return np.ones(features.shape)
    return torch.autograd.grad(outer.sum(), features, materialize_grads=True)[0].numpy()


def _ascend(
    net: ClassTokenNet,
    task: Retrieval,
    box: Box,
    looked_at: Sequence[tuple[Tensor, Tensor]],
    rng: np.random.Generator,
    deadline: Deadline,
) -> Float[Tensor, "kept length dim"]:
    """Normalised gradient ascent on the error from the worst inputs, each with its own step."""
    starts, found = (torch.cat(each) for each in zip(*looked_at, strict=True))
    kept = int(min(max(1, _WORK / _STEPS * 4 / _work(task, net)), _KEPT, len(starts)))
    best = starts[found.topk(kept).indices].clone()
    highest = found.topk(kept).values
    low, high = (torch.from_numpy(side) for side in box)
    widest = float((high - low).max())
    sizes = torch.from_numpy(widest * 10 ** rng.uniform(log10(1e-5), -1, (kept, 1, 1)))
    current = best.clone()
    for step in range(_STEPS):
        if deadline.passed:
            break
        current.requires_grad_(True)
        (gradient,) = torch.autograd.grad(errors(net, task, current).sum(), current)
        with torch.no_grad():
            largest = gradient.abs().amax((1, 2), keepdim=True).clamp_min(1e-300)
            decay = 1 - step / _STEPS
            current = (current + decay * sizes * gradient / largest).clamp(low, high)
            error = errors(net, task, current)
            better = error > highest
            best[better], highest = current[better], torch.maximum(error, highest)
    return best


def _block(task: Retrieval, net: ClassTokenNet) -> int:
    """Sequences whose hidden layers fit in a bounded block of memory."""
    widest = max(task.token_dim, net.shape.embed_dim, *net.shape.embed.widths)
    readout = max(net.shape.readout.widths, default=1)
    return max(1, _FLOATS // max(task.length * widest, readout))


def _work(task: Retrieval, net: ClassTokenNet) -> int:
    """Multiplications for one sequence, about."""
    counts = net.shape.params()
    return task.length * (counts["embedding"] + counts["attention"]) + counts["readout"]
