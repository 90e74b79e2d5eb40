"""A witness against an attention block: two inputs that it confuses and the target does not.

All that a readout sees of an input X is z(X), the class token after attention. If
|z(X) − z(X')| = δ and the targets of X and X' are Δ apart, then an L-Lipschitz readout gives the
two outputs at most Lδ apart, so on one of them it errs by at least (Δ − Lδ)/2: only a readout that
is steeper than L does better on the pair. With enough heads and the right weights there is no such
pair; with too few the proof of theorem 2(2) finds one by counting, and this module by optimisation.
"""

from dataclasses import dataclass, field
from math import erf, exp, pi, sqrt
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.build.budget import check_box, check_numbers
from headwise.build.certify.rounding import representation_rounding
from headwise.core.errors import require
from headwise.core.lazy import Drawn
from headwise.core.progress import OnProgress, quiet
from headwise.nets import ClassTokenNet
from headwise.tasks.retrieval import Retrieval
from headwise.theory.bound import rounded_down, rounded_up
from headwise.theory.checks import not_negative, positive, shown, whole
from headwise.theory.directed import UNIT, down, up

GAUSSIAN_BOX = (-3.0, 3.0)
"""Where the tokens of a Gaussian task are looked for unless a box is given."""
_GELU_SLOPE = (1 + erf(1)) / 2 + exp(-1) / sqrt(pi)  # the largest, at √2
SAMPLE = 4096
"""Inputs among which near collisions are looked for, and on which errors are measured."""
_DAMPING = 1e-9
_NORM_DOUBT = 1e-12  # relative, of a product of computed spectral norms
_CAUTION = 1000.0  # on a rounding that is estimated from float32, whose unit is 2^29 times as large
_LONGEST = 0.25  # step in a coordinate, relative to the box's half width


@dataclass(frozen=True)
class Witness(Drawn):
    """Two inputs, their targets' distance Δ and their representations' distance δ.

    δ is computed in floating point: `rounding` is how far it can be from the exact distance, by
    forward error analysis where `rounding_is_bounded`, and for networks that the analysis does not
    cover (several layers, norms) a thousand times what a comparison with float32 suggests.
    `representations`, `targets`: of both inputs; `readout_lipschitz`: at most this is the net's.
    """

    drawn_by: ClassVar[str] = "headwise.report.witnesses:draw_witness"

    first: Float[Tensor, "length dim"] = field(repr=False)
    second: Float[Tensor, "length dim"] = field(repr=False)
    representations: Float[Tensor, "2 width"] = field(repr=False)
    targets: Float[Tensor, " 2"] = field(repr=False)
    target_gap: float
    representation_gap: float
    rounding: float
    rounding_is_bounded: bool
    readout_lipschitz: float
    network_error: float

    def forced_error(self, lipschitz: float | None = None) -> float:
        """What every readout with this Lipschitz constant (the network's own if None) errs by."""
        given = self.readout_lipschitz if lipschitz is None else lipschitz
        constant = not_negative("lipschitz", given)
        return max(0.0, down((self.target_gap - up(constant * self.largest_gap)) / 2))

    def forced_lipschitz(self, error: float) -> float:
        """The least Lipschitz constant of a readout that errs by at most `error` on the pair."""
        excess = self.target_gap - 2 * not_negative("error", error)
        return down(excess / self.largest_gap) if excess > 0 else 0.0

    @property
    def largest_gap(self) -> float:
        """δ as computed, and what rounding may have hidden of it."""
        doubt = (self.representations.shape[1] + 8) * UNIT  # of the norm of the difference
        return up(self.representation_gap + self.rounding, doubt)

    def to_data(self) -> dict[str, Any]:
        """The witness as JSON data, the two inputs included."""
        return {
            "target_gap": self.target_gap,
            "representation_gap": self.representation_gap,
            "rounding": self.rounding,
            "rounding_is_bounded": self.rounding_is_bounded,
            "readout_lipschitz": self.readout_lipschitz,
            "forced_error": self.forced_error(),
            "network_error": self.network_error,
            "first": self.first.tolist(),
            "second": self.second.tolist(),
            "representations": self.representations.tolist(),
            "targets": self.targets.tolist(),
        }

    def __str__(self) -> str:
        constant = rounded_up(self.readout_lipschitz)
        return (
            f"Two inputs with targets {rounded_down(self.target_gap)} apart and representations "
            f"{rounded_up(self.representation_gap, 3)} apart (rounding: {self.rounding:.1g}"
            f"{'' if self.rounding_is_bounded else ', estimated'}): every readout with Lipschitz "
            f"constant up to {constant} (this network's is no larger) errs by at least "
            f"{rounded_down(self.forced_error(float(constant)))} on one of them; the network "
            f"itself errs by {self.network_error:.4g}."
        )


def readout_lipschitz(net: ClassTokenNet) -> float:
    """An upper bound: the product of the layers' spectral norms and the activations' slopes."""
    require(isinstance(net, ClassTokenNet), f"net must be a ClassTokenNet, not {shown(net)}")
    layers = len(net.shape.readout.widths)
    slope = 1.0 if net.shape.readout.activation == "relu" else _GELU_SLOPE
    norms = [
        float(
            torch.linalg.matrix_norm(net.get_parameter(f"readout.{i}.weight").detach().double(), 2)
        )
        for i in range(layers + 1)
    ]
    return up(slope**layers * float(np.prod(norms)), _NORM_DOUBT)


def in_double_precision(net: ClassTokenNet) -> ClassTokenNet:
    """A copy whose weights are the same numbers, in double precision and not to be trained."""
    params = {name: value.double() for name, value in net.named_parameters()}
    return ClassTokenNet(net.shape, params).requires_grad_(False)


def witness(
    net: ClassTokenNet,
    task: Retrieval,
    *,
    lipschitz: float | None = None,
    box: tuple[float, float] | None = None,
    reach: float | None = None,
    starts: int = 64,
    steps: int = 150,
    seed: int = 0,
    on_progress: OnProgress = quiet,
) -> Witness:
    """The pair found that forces the largest error on readouts of a Lipschitz constant.

    `lipschitz` is the readout's own upper bound by default. Tokens stay in the box: [0, 1] for
    uniform inputs, [−3, 3] for Gaussian ones unless another is given; with a `reach`, each of
    their coordinates also stays that near to a pair of sequences that the task drew.
    """
    require(isinstance(net, ClassTokenNet), f"net must be a ClassTokenNet, not {shown(net)}")
    require(isinstance(task, Retrieval), f"task must be a Retrieval, not {shown(task)}")
    require(task.token_dim == net.shape.token_dim, "the network's tokens are not the task's")
    require(net.shape.outputs == 1, "a witness is for networks with one output")
    exact = in_double_precision(net)
    own = readout_lipschitz(exact)
    starts, steps = whole("starts", starts, least=2), whole("steps", steps, least=2)
    seed = whole("seed", seed, least=0)
    constant = own if lipschitz is None else not_negative("lipschitz", lipschitz)
    size = 2 * task.length * task.token_dim * (1 + net.shape.embed_dim)
    check_numbers(starts * size, "the starts of the search take {} numbers")
    usual = (0.0, 1.0) if task.inputs == "uniform" else GAUSSIAN_BOX
    low, high = usual if box is None else check_box(box)
    rng = np.random.default_rng([seed, 0x517])
    pairs = _starts(exact, task, (low, high), starts, rng)
    lowest, highest = torch.full_like(pairs, low), torch.full_like(pairs, high)
    if reach is not None:
        reach = positive("reach", reach)
        lowest, highest = (pairs - reach).clamp_min(low), (pairs + reach).clamp_max(high)
    pairs = _climb(exact, task, pairs, (lowest, highest), steps, constant, on_progress)
    target_gap, gap = _gaps(exact, task, pairs)
    best = int((target_gap - constant * gap).argmax())
    pair = pairs[best]
    targets = task.oracle(pair)
    errors = (exact(pair).squeeze(1) - targets).abs()
    rounding, bounded = _rounding(exact, pair)
    return Witness(
        first=pair[0],
        second=pair[1],
        representations=exact.attend(pair),
        targets=targets,
        # less the rounding of the targets' own evaluation
        target_gap=max(0.0, float(target_gap[best] - 64 * UNIT * targets.abs().sum())),
        representation_gap=float(gap[best]),
        rounding=rounding,
        rounding_is_bounded=bounded,
        readout_lipschitz=own,
        network_error=float(errors.max()),
    )


def _rounding(net: ClassTokenNet, pair: Float[Tensor, "2 length dim"]) -> tuple[float, bool]:
    """What rounding can do to the distance of the representations, and whether it is proved."""
    params = {name: value.detach().numpy() for name, value in net.named_parameters()}
    each = [representation_rounding(net.shape, params, tokens) for tokens in pair.numpy()]
    known = [error for error in each if error is not None]
    if len(known) == 2:
        return up(sum(known)), True
    with torch.no_grad():
        hidden = net.attend(pair)
        single = ClassTokenNet(net.shape, {n: p.float() for n, p in net.named_parameters()})
        coarse = single.attend(pair.float()).double()
    seen = float((hidden - coarse).norm(dim=1).sum())
    return _CAUTION * 2.0**-29 * seen + 64 * UNIT * float(hidden.norm()), False


def _starts(
    net: ClassTokenNet,
    task: Retrieval,
    box: tuple[float, float],
    count: int,
    rng: np.random.Generator,
) -> Float[Tensor, "count 2 length dim"]:
    """Half: the sampled pairs with the largest Δ/δ. Half: pairs at random."""
    size = max(2 * count, min(SAMPLE, (1 << 22) // (task.length * task.token_dim)))
    shape = (size, task.length, task.token_dim)
    drawn = rng.standard_normal(shape) if task.inputs == "gaussian" else rng.random(shape)
    inputs = torch.from_numpy(np.clip(drawn, *box))
    hidden, targets = net.attend(inputs), task.oracle(inputs)
    largest = []
    for rows in torch.arange(size).split(512):
        distance = torch.cdist(hidden[rows], hidden)
        distance[torch.arange(len(rows)), rows] = torch.inf
        ratio = (targets[rows, None] - targets).abs() / distance.clamp_min(1e-12)
        largest.append(ratio.max(1))
    chosen = torch.cat([each.values for each in largest]).topk(count // 2).indices
    partner = torch.cat([each.indices for each in largest])[chosen]
    near = torch.stack([inputs[chosen], inputs[partner]], 1)
    left = count - count // 2
    return torch.cat([near, torch.stack([inputs[:left], inputs[left : 2 * left]], 1)])


def _climb(
    net: ClassTokenNet,
    task: Retrieval,
    pairs: Float[Tensor, "count 2 length dim"],
    bounds: tuple[Tensor, Tensor],
    steps: int,
    lipschitz: float,
    on_progress: OnProgress,
) -> Float[Tensor, "count 2 length dim"]:
    """Drive δ to zero by Newton's method while Δ climbs along what leaves z(X) − z(X') alone.

    With A the Jacobian of z(X) − z(X') and g the gradient of Δ, a step is −A⁺(z(X) − z(X')) plus a
    multiple of (1 − A⁺A)g. Coordinates at the edge of the box that would leave it stay behind. The
    last quarter of the steps only closes the gap.
    """
    current, best = pairs.clone(), pairs.clone()
    target_gap, gap = _gaps(net, task, pairs)
    score = target_gap - lipschitz * gap
    low, high = (side.flatten(1) for side in bounds)
    half = float((high - low).max()) / 2
    climbing = max(1, 3 * steps // 4)
    for step in range(steps):
        difference, jacobian, gradient = _derivatives(net, task, current)
        flat = current.flatten(1)
        edge = ((flat >= high) & (gradient > 0)) | ((flat <= low) & (gradient < 0))
        jacobian = jacobian * ~edge.unsqueeze(1)
        gradient = gradient * ~edge
        gram = jacobian @ jacobian.mT
        scale = gram.diagonal(dim1=1, dim2=2).mean(1).clamp_min(1e-30)
        gram = gram + _DAMPING * scale[:, None, None] * torch.eye(gram.shape[1]).double()
        both = torch.stack([difference, (jacobian @ gradient.unsqueeze(2)).squeeze(2)], 2)
        close, along = (jacobian.mT @ torch.linalg.solve(gram, both)).unbind(2)
        tangent = gradient - along
        pace = 0.1 * half * (1 - step / climbing) if step < climbing else 0.0
        move = pace * tangent / tangent.abs().amax(1, keepdim=True).clamp_min(1e-30)
        longest = close.abs().amax(1, keepdim=True).clamp_min(1e-30)
        move = move - close * (_LONGEST * half / longest).clamp_max(1.0)
        current = (flat + move).clamp(low, high).view_as(current)
        target_gap, gap = _gaps(net, task, current)
        found = target_gap - lipschitz * gap
        better = found > score
        best[better], score = current[better], torch.maximum(found, score)
        on_progress((step + 1) / steps, "looking for a witness")
    return best


def _derivatives(
    net: ClassTokenNet, task: Retrieval, pairs: Float[Tensor, "count 2 length dim"]
) -> tuple[
    Float[Tensor, "count embed"], Float[Tensor, "count embed size"], Float[Tensor, "count size"]
]:
    """z(X) − z(X'), its Jacobian, and the gradient of |target(X) − target(X')|."""
    inputs = pairs.detach().requires_grad_(True)
    hidden = net.attend(inputs.flatten(0, 1)).unflatten(0, inputs.shape[:2])
    difference = hidden[:, 0] - hidden[:, 1]
    count, size = difference.shape
    each = torch.eye(size).double().unsqueeze(1).expand(size, count, size)
    (rows,) = torch.autograd.grad(difference, inputs, each, is_grads_batched=True)
    targets = task.oracle(inputs.flatten(0, 1)).view(-1, 2)
    (gradient,) = torch.autograd.grad((targets[:, 0] - targets[:, 1]).abs().sum(), inputs)
    return difference.detach(), rows.flatten(2).transpose(0, 1), gradient.flatten(1)


def _gaps(
    net: ClassTokenNet, task: Retrieval, pairs: Float[Tensor, "count 2 length dim"]
) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    """(Δ, δ) of each pair."""
    with torch.no_grad():
        hidden = net.attend(pairs.flatten(0, 1)).unflatten(0, pairs.shape[:2])
        targets = task.oracle(pairs.flatten(0, 1)).view(-1, 2)
        gap = torch.linalg.vector_norm(hidden[:, 0] - hidden[:, 1], dim=1)
        return (targets[:, 0] - targets[:, 1]).abs(), gap
