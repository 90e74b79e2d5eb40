"""Theorem 2(1) as weights: one head of dimension 2 for each feature of a retrieval task.

Head i embeds token t as (Ψ_i(x(t)), r_i(t)): Ψ_i approximates f_i, and r_i(t) is 0 on S_i and −g_i
off it. Its score is β(±Ψ_i + r_i), + for a maximum and − for a minimum, its value Ψ_i. With
v = ∓Ψ_i on S_i the head returns Σ p v, which exceeds min v by at most W((|S_i| − 1)/e)/β (sharp;
see `theory.head_count.softmax_min_error`); positions off S_i hold next to no weight once
g_i exceeds the range of Ψ_i by a margin. A readout Φ ≈ F_0 reads the D values:

    |Φ(ẑ) − F_0(z)| ≤ |Φ(ẑ) − F_0(ẑ)| + |F_0(ẑ) − F_0(z)|,   |ẑ_i − z_i| ≤ softmax + leak + δ_i.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from headwise.build.arrays import as_arrays, make_net
from headwise.build.budget import (
    FLOAT_SHARE,
    KnownTask,
    MapPlans,
    check_error,
    in_reach,
    known_task,
    share_out,
)
from headwise.build.built import Built, build_from
from headwise.build.certify.certificate import Certificate, Term
from headwise.build.certify.precision import digests, precision_of
from headwise.build.recipe import Recipe
from headwise.core.errors import require
from headwise.nets import AttentionShape, ClassTokenNet, ClassTokenShape, MLPShape
from headwise.tasks.retrieval import Retrieval
from headwise.theory.bound import rounded_up
from headwise.theory.checks import shown, whole
from headwise.theory.head_count import softmax_leakage, softmax_min_error

HEAD_DIM = 2
_SOFTMAX_SHARE = 0.1  # where approximations, which cost parameters, want most of the error
_LEAK_EXPONENT = 40.0  # positions off S_i hold at most e^-40 of the attention


def retrieval(
    task: Retrieval,
    error: float | None = None,
    *,
    temperature: float | None = None,
    heads: int | None = None,
    box: tuple[float, float] | None = None,
    max_bytes: int | None = None,
) -> Built:
    """A network with one head a feature, and a certificate that it is within `error`.

    `temperature` (1/β) fixes the softmax instead of the error, or beside it; further `heads` are
    zero. `box` bounds the tokens' coordinates where the task's inputs do not.
    """
    design = plan_retrieval(task, error, temperature=temperature, heads=heads, box=box)
    return build_from(design, max_bytes)


@dataclass(frozen=True, kw_only=True)
class RetrievalDesign:
    """All about the network but its weights."""

    task: Retrieval
    asked: float | None
    known: KnownTask
    plans: MapPlans
    shape: ClassTokenShape
    temperature: float
    again: Callable[[float], "RetrievalDesign"] | None

    def make(self) -> tuple[ClassTokenNet, "RetrievalRecipe"]:
        """Allocate and fill the weights."""
        task, heads = self.task, self.shape.layers[0].heads
        dims, width = task.intrinsic_dim, HEAD_DIM * heads
        values = HEAD_DIM * np.arange(dims)  # where Ψ_i stands; r_i follows it
        arrays, slack = as_arrays("embed", self.plans.features.make())
        last = f"embed.{len(self.shape.embed.widths)}"
        for name, rows in ((f"{last}.weight", arrays), (f"{last}.bias", arrays), (last, slack)):
            spread = np.zeros((width, *rows[name].shape[1:]))
            spread[values] = rows[name]
            rows[name] = spread
        readout, readout_slack = as_arrays("readout", self.plans.outer.make())
        first = np.zeros((len(readout["readout.0.bias"]), width))
        first[:, values] = readout["readout.0.weight"]
        used = np.zeros(width)
        used[: HEAD_DIM * dims] = 1
        inverse = np.zeros(width)
        inverse[values] = np.array(task.signs) / self.temperature
        inverse[values + 1] = 1 / self.temperature
        arrays |= readout | {
            "readout.0.weight": first,
            "class_token": np.ones(width),
            "layers.0.query.weight": np.diag(inverse),
            "layers.0.key.weight": np.diag(used),
            "layers.0.value.weight": np.diag(used),
            "layers.0.out.weight": np.diag(used),
        }
        gates = self._gates()
        if task.subsets:
            arrays["positions"] = np.zeros((task.length, width))
            arrays["positions"][:, values + 1] = np.where(task.membership.numpy(), 0.0, -gates)
        net = make_net(self.shape, arrays)
        recipe = RetrievalRecipe(
            known=self.known,
            plans=self.plans,
            asked=self.asked,
            temperature=self.temperature,
            gates=gates,
            slack=slack | readout_slack,
            digests=digests(dict(net.named_parameters())),
        )
        return net, recipe

    def _gates(self) -> np.ndarray:
        """g_i: the range of Ψ_i, and a margin that leaves e^-40 of the weight to what is gated."""
        margin = self.temperature * (log(max(self.task.length, 2)) + _LEAK_EXPONENT)
        return self.known.features.high - self.known.features.low + margin


def plan_retrieval(
    task: Retrieval,
    error: float | None = None,
    *,
    temperature: float | None = None,
    heads: int | None = None,
    box: tuple[float, float] | None = None,
    reserve: float | None = None,
) -> RetrievalDesign:
    """The design of the network: its shape, and so its size, before anything is allocated.

    `reserve` is the part of the error that is kept for rounding.
    """
    error = check_error(error)
    require(isinstance(task, Retrieval), f"task must be a Retrieval, not {shown(task)}")
    require(
        error is not None or temperature is not None, "give the error to reach, or a temperature"
    )
    dims = task.intrinsic_dim
    count = dims if heads is None else whole("heads", heads)
    require(count >= dims, f"{count} heads are too few: the task extracts {dims} features")
    what = known_task(task, box, bounded=False, heading="this construction")
    usable = 0.0 if error is None else error - (FLOAT_SHARE * error if reserve is None else reserve)
    given = temperature
    unit_softmax = _softmax_term(task, what, 1.0)
    exact = what.features.exact and what.outer.exact
    if temperature is None:
        assert error is not None
        share = usable * (1 if exact else _SOFTMAX_SHARE)
        temperature = share / unit_softmax if unit_softmax > 0 else 1.0
    else:
        temperature = in_reach("temperature", temperature)
    require(
        exact or error is not None,
        "features or an outer map that are not affine are approximated: give the error to reach",
    )
    left = usable - temperature * unit_softmax
    require(
        exact or left > 0,
        f"at temperature {temperature:g} the softmax alone may err by "
        f"{temperature * unit_softmax:.4g}, which leaves nothing of the error {error}",
    )

    def shape_of(plans: MapPlans) -> ClassTokenShape:
        return ClassTokenShape(
            token_dim=task.token_dim,
            embed_dim=HEAD_DIM * count,
            layers=(AttentionShape(heads=count, qk_dim=HEAD_DIM, v_dim=HEAD_DIM),),
            embed=MLPShape(widths=plans.features.widths, activation="relu"),
            readout=MLPShape(widths=plans.outer.widths, activation="relu"),
            positions=task.length if task.subsets else 0,
            class_token_is_key=False,
            scaled=False,
        )

    plans = share_out(what, left, shape_of)
    return RetrievalDesign(
        task=task,
        asked=error,
        known=what,
        plans=plans,
        shape=shape_of(plans),
        temperature=temperature,
        again=None
        if given is not None or reserve is not None
        else lambda kept: plan_retrieval(task, error, heads=heads, box=box, reserve=kept),
    )


@dataclass(frozen=True, kw_only=True)
class RetrievalRecipe(Recipe):
    """What the certificate of a retrieval network is computed from, at any length."""

    temperature: float
    gates: np.ndarray

    def certify(self, task: Retrieval, net: ClassTokenNet) -> Certificate:
        """The certificate of `net` for the task, which may be longer or shorter than it was."""
        outer, tau = self.known.outer, self.temperature
        softmax = _softmax_errors(task, tau)
        precision = precision_of(net, self.digests)
        rounding, target = self.round_off(task, net, precision)
        noise = tau * rounding.scores[: task.intrinsic_dim]  # in units of the values
        # Softmax of v + noise is within W/β of min(v + noise), so of min v but for twice the noise.
        arithmetic = rounding.output + target + outer.spread(2 * noise)
        terms = [
            Term(
                "softmax temperature",
                _softmax_term(task, self.known, tau),
                f"each z_i errs by at most W((|S_i| − 1)/e)·τ ≤ "
                f"{rounded_up(float(softmax.max()), 3)}, τ = 1/β = {tau:.4g}",
            )
        ]
        if task.subsets:
            leak = self._leaks(task, noise)
            terms.append(
                Term(
                    "positions off the subsets",
                    outer.spread(leak),
                    f"gates g_i ≤ {rounded_up(float(self.gates.max()), 3)} leave each z_i within "
                    f"{rounded_up(float(leak.max()), 2)}",
                )
            )
        gaps = tuple(float(tau + each) for each in softmax)
        return self.certificate(task, net, terms, arithmetic, precision, gaps)

    def to_data(self) -> dict[str, Any]:
        """What, with the task, makes the same network again."""
        return {
            "construction": "retrieval",
            "error": self.asked,
            "temperature": self.temperature,
            "box": self.known.given,
        }

    def _leaks(self, task: Retrieval, noise: np.ndarray) -> np.ndarray:
        """What the gated positions do to each z_i; all that they can where noise opens the gate."""
        ranges = self.known.features.high - self.known.features.low
        leaks = []
        for size, gate, width in zip(task.set_sizes, self.gates - 2 * noise, ranges, strict=True):
            outside, width = task.length - size, max(float(width), 1e-300)
            shut = outside == 0 or gate > 0
            found = softmax_leakage(outside, self.temperature, max(float(gate), 1e-300), width)
            leaks.append(found.value if shut else width)
        return np.array(leaks)


def _softmax_errors(task: Retrieval, temperature: float) -> np.ndarray:
    """W((|S_i| − 1)/e)·τ for each feature."""
    return np.array([softmax_min_error(size, temperature).value for size in task.set_sizes])


def _softmax_term(task: Retrieval, what: KnownTask, temperature: float) -> float:
    """What they do to the result: a softmax falls short of a maximum and exceeds a minimum."""
    return what.outer.one_sided(_softmax_errors(task, temperature), -np.array(task.signs))
