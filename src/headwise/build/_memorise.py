"""Theorem 2(3) as weights: one wide head holds the whole sequence, the readout does the rest.

The embedding puts token t into its own place, e_t ⊗ (x(t) − low); uniform attention (all scores
are zero) averages, which returns (x(1) − low, …, x(T) − low)/T; the readout computes the target.
Its first part is Ψ ≈ f for each token, its last Φ ≈ F_0, and between them stands the maximum of
v_t in [a, b] by counting levels: with n' levels of height s = (b − a)/n',

    max_t v_t ≈ a − s/2 + Σ_j min(s, Σ_t relu(v_t − a − j s)),   j = 0..n'−1,

within s/2: every level below the maximum counts s, those above count 0, and the one that it lies
in something between. Where Ψ and Φ have one hidden layer the readout has the five layers of the
theorem; the interpolants of functions in two or more dimensions are deeper.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from headwise.build.arrays import as_arrays, make_net
from headwise.build.budget import (
    FLOAT_SHARE,
    KnownTask,
    MapPlans,
    check_error,
    known_task,
    share_out,
)
from headwise.build.built import Built, build_from
from headwise.build.certify.certificate import Certificate, Term
from headwise.build.certify.precision import digests, precision_of
from headwise.build.maps.relu import Network, compose, layer, repeat
from headwise.build.recipe import Recipe
from headwise.core.errors import require
from headwise.nets import AttentionShape, ClassTokenNet, ClassTokenShape, MLPShape
from headwise.tasks.retrieval import Retrieval

Range = tuple[float, float]
_LEVELS_SHARES = np.linspace(0.1, 0.9, 9)


def memorise(
    task: Retrieval, error: float, *, box: Range | None = None, max_bytes: int | None = None
) -> Built:
    """A network with one head of dimension length·token_dim, certified to be within `error`."""
    return build_from(plan_memorise(task, error, box=box), max_bytes)


@dataclass(frozen=True, kw_only=True)
class MemoriseDesign:
    """All about the network but its weights; `levels[i]` is n' for feature i."""

    task: Retrieval
    asked: float
    known: KnownTask
    plans: MapPlans
    levels: tuple[int, ...]
    shape: ClassTokenShape
    again: Callable[[float], "MemoriseDesign"] | None

    def make(self) -> tuple[ClassTokenNet, "MemoriseRecipe"]:
        """Allocate and fill the weights."""
        length, dim = self.task.length, self.task.token_dim
        low, high = self.known.box
        places = length * dim
        first = np.tile(np.eye(dim), (length, 1))
        # Tokens are embedded into every place; positions push all but their own below zero.
        own = np.kron(np.eye(length), np.ones(dim))
        arrays = {
            "embed.0.weight": first,
            "embed.0.bias": np.tile(-low, length),
            "positions": np.where(own > 0, 0.0, -np.tile(high - low, length)),
            "embed.1.weight": np.eye(places),
            "layers.0.value.weight": np.eye(places),
            "layers.0.out.weight": np.eye(places),
        }
        spread = layer(length * np.eye(places), np.tile(low, length))
        tokens = compose([spread], repeat(self.plans.features.make(), length))
        network = compose(compose(tokens, self._extrema()), self.plans.outer.make())
        readout, slack = as_arrays("readout", network)
        net = make_net(self.shape, arrays | readout)
        recipe = MemoriseRecipe(
            known=self.known,
            plans=self.plans,
            asked=self.asked,
            steps=self._steps(),
            slack=slack,
            digests=digests(dict(net.named_parameters())),
        )
        return net, recipe

    def _steps(self) -> np.ndarray:
        ranges = self.known.features.high - self.known.features.low
        return ranges / np.array(self.levels, np.float64)

    def _extrema(self) -> Network:
        """(length·features) values of Ψ → the features z_i."""
        length, dims = self.task.length, self.task.intrinsic_dim
        inside, signs = self.task.membership.numpy(), np.array(self.task.signs)
        features, steps = self.known.features, self._steps()
        starts = np.where(signs > 0, features.low, -features.high)  # a, of ±Ψ_i
        units = [
            (i, t, j)
            for i in range(dims)
            for j in range(self.levels[i])
            for t in np.flatnonzero(inside[:, i])
        ]
        feature, token, level = np.array(units).T
        rows = np.arange(len(units))
        excess = np.zeros((len(units), length * dims))
        excess[rows, token * dims + feature] = signs[feature]
        floors = starts[feature] + level * steps[feature]
        pairs = np.cumsum([0, *self.levels])[feature] + level  # which (feature, level)
        count = sum(self.levels)
        totals = np.zeros((count, len(units)))
        totals[pairs, rows] = 1
        heights = np.repeat(steps, self.levels)
        owner = np.repeat(np.arange(dims), self.levels)
        last = np.zeros((dims, 2 * count))
        last[owner, np.arange(count)] = signs[owner]
        last[owner, count + np.arange(count)] = -signs[owner]
        rounding = 4 * 2.0**-53
        return [
            layer(excess, -floors, rounding * np.abs(floors)),
            layer(np.concatenate([totals, totals]), np.concatenate([np.zeros(count), -heights])),
            layer(last, signs * (starts - steps / 2), rounding * (np.abs(starts) + steps)),
        ]


def plan_memorise(
    task: Retrieval, error: float, *, box: Range | None = None, reserve: float | None = None
) -> MemoriseDesign:
    """The design of the network: its shape, and so its size, before anything is allocated.

    `reserve` is the part of the error that is kept for rounding.
    """
    asked = check_error(error)
    require(asked is not None, "give the error to reach")
    assert asked is not None
    what = known_task(task, box, bounded=True, heading="the memorising network")
    ranges = what.features.high - what.features.low
    unit = max(what.outer.spread(np.ones(task.intrinsic_dim)), 1e-300)
    available = asked - (FLOAT_SHARE * asked if reserve is None else reserve)
    exact = what.features.exact and what.outer.exact

    def levels_for(budget: float) -> tuple[int, ...]:
        height = 2 * budget / unit
        return tuple(max(1, ceil(float(width) / height)) for width in ranges)

    def design(share: float) -> MemoriseDesign:
        levels = levels_for(share * available)

        def shape_of(plans: MapPlans) -> ClassTokenShape:
            return _shape(task, plans, levels)

        plans = share_out(what, (1 - share) * available, shape_of)
        return MemoriseDesign(
            task=task,
            asked=asked,
            known=what,
            plans=plans,
            levels=levels,
            shape=shape_of(plans),
            again=None
            if reserve is not None
            else lambda kept: plan_memorise(task, asked, box=box, reserve=kept),
        )

    designs = [design(share) for share in ([1.0] if exact else _LEVELS_SHARES.tolist())]
    return min(designs, key=lambda each: each.shape.params()["mlp"])


def _shape(task: Retrieval, plans: MapPlans, levels: tuple[int, ...]) -> ClassTokenShape:
    places = task.length * task.token_dim
    counting = sum(size * n for size, n in zip(task.set_sizes, levels, strict=True))
    per_token = tuple(task.length * width for width in plans.features.widths)
    return ClassTokenShape(
        token_dim=task.token_dim,
        embed_dim=places,
        layers=(AttentionShape(heads=1, qk_dim=1, v_dim=places),),
        embed=MLPShape(widths=(places,), activation="relu"),
        readout=MLPShape(
            widths=(*per_token, counting, 2 * sum(levels), *plans.outer.widths), activation="relu"
        ),
        positions=task.length,
        position_kind="concat",
        class_token_is_key=False,
        scaled=False,
    )


@dataclass(frozen=True, kw_only=True)
class MemoriseRecipe(Recipe):
    """What the certificate of a memorising network is computed from."""

    steps: np.ndarray

    def certify(self, task: Retrieval, net: ClassTokenNet) -> Certificate:
        """The certificate; the weights hold the length, so there is one length only."""
        require(
            task.length == net.shape.positions,
            f"a memorising network holds its length, {net.shape.positions}, in its weights; build "
            f"another for length {task.length}",
        )
        precision = precision_of(net, self.digests)
        rounding, target = self.round_off(task, net, precision)
        terms = (
            Term("softmax temperature", 0.0, "uniform attention returns the average exactly"),
            Term(
                "levels of the extrema",
                self.known.outer.spread(self.steps / 2),
                f"each z_i within half a level, {self.steps.max() / 2:.3g}",
            ),
        )
        return self.certificate(task, net, terms, rounding.output + target, precision)

    def to_data(self) -> dict[str, Any]:
        """What, with the task, makes the same network again."""
        return {"construction": "memorise", "error": self.asked, "box": self.known.given}
