"""Second moments of what flows through each attention layer, and of the loss gradient there.

One forward and one backward pass over the calibration data fill the sums of as many layers as fit
into memory; larger models take several passes, at least one layer each. Nothing but sums
is kept, so memory does not grow with the data.

The sums, per query head unless said otherwise (g_y is the gradient of the objective's score with
respect to y, so E[g gᵀ] is its curvature at y):

- context c (the attention-mixed values): mean, E[c cᵀ], E[g_c g_cᵀ]. Replacing c by its mean μ in a
  stretch of tokens changes the score by s = Σ (μ − c)·g_c, and half of the square of a small s is
  what that costs. Of a large one it need not be: a gradient may promise many times what happens,
  seemingly at first tokens most, and a few such stretches would be most of E[s²]. So
  E[log(1 + s²)] is kept, with the mean of what was seen so far as μ. Of Σ c·g_c over sequences the
  mean size and square, for methods that score heads by them;
- query q: E[q qᵀ], E[g_q g_qᵀ]. By the chain rule g_q = scale · Σ_j g_ij k_j over the score's
  gradients g_ij, and these sum to zero over j: moments of g_q are moments of the keys, weighted by
  sensitivity and centred, as the softmax's invariance asks;
- with RoPE, for each key group the moments of a_p = q̄_p g_p over its pairs p (as complex numbers),
  real and imaginary parts side by side: the gradient with respect to a complex gain on pair p.
  (RoPE turns q and g_q alike, so their product does not see it.);
- of the layer: mean and E[x xᵀ] of the input, E[c cᵀ] across heads; with RoPE E[g_q g_qᵀ] and
  E[g_k g_kᵀ] across heads;
- "felt" covariances, of c and with RoPE of x, in which a token counts by its squared gradient (of
  c; of its queries or keys): a few tokens, such as the first, may be felt by all the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.core.errors import require
from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.adapters import AttentionSite, Projection
from headwise.pretrained.adapters.mechanism import paired
from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.measure.store import Kept, Sums, restored, stored
from headwise.pretrained.model.mode import evaluating, frozen
from headwise.pretrained.text.calibration import to_device

NOTHING_KEPT = Kept(None)
_STRETCH = 128  # tokens: the changes of neighbours add up, and a sequence gives several numbers


@dataclass
class LayerMoments:
    """Sums over the calibration data, already divided: second moments a token or a unit of loss."""

    context_mean: Float[Tensor, "heads dim"]
    context: Float[Tensor, "heads dim dim"]
    context_gradient: Float[Tensor, "heads dim dim"]
    change: Float[Tensor, " heads"]  # E log(1 + s²) a stretch
    stretches: Float[Tensor, ""]  # a unit
    query: Float[Tensor, "heads dim dim"]
    query_gradient: Float[Tensor, "heads dim dim"]
    gain: Float[Tensor, "groups gains gains"] | None
    input_mean: Float[Tensor, " hidden"]
    input: Float[Tensor, "hidden hidden"]
    all_context: Float[Tensor, "rows rows"] | None  # None: a head is told nothing of the others
    gate_size: Float[Tensor, " heads"]
    gate_square: Float[Tensor, " heads"]
    all_query_gradient: Float[Tensor, "rows rows"] | None
    all_key_gradient: Float[Tensor, "key_rows key_rows"] | None
    felt_context: Float[Tensor, "heads dim dim"]
    felt_by_query: Float[Tensor, "hidden hidden"] | None
    felt_by_key: Float[Tensor, "hidden hidden"] | None


class _Sums(Sums):
    """Adds up one layer's products as hooks deliver values and gradients."""

    def __init__(self, site: AttentionSite) -> None:
        super().__init__()
        self.site = site

    def add(self, name: str, value: Tensor) -> None:
        if name in self.totals:
            self.totals[name] += value.to(self.totals[name].device)
        else:
            self.totals[name] = value.double()

    def hook(self, model: nn.Module) -> list[Any]:
        site = self.site
        # What the scores are made of: a norm's output where there is one.
        query = site.query.path if site.norm is None else site.norm.query
        handles = [
            model.get_submodule(query).register_forward_hook(self._on_query),
            model.get_submodule(site.output).register_forward_pre_hook(self._on_context),
        ]
        module = model.get_submodule(site.query.path)
        handles.append(module.register_forward_hook(self._on_input))
        if site.rotary:
            module = model.get_submodule(site.key.path)
            handles.append(module.register_forward_hook(self._on_key))
        return handles

    def _queries(self, output: Tensor) -> Tensor:
        site = self.site
        flat = site.query.columns(output) if site.norm is None else site.norm.flat(output)
        return heads_apart(paired(site, flat), site.head_dim)

    def _on_query(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        site = self.site
        output = tracked(output)
        query = self._queries(output.detach())
        self.tokens += query.shape[1]
        self.add("query", query.mT @ query)

        def on_gradient(gradient: Tensor) -> None:
            by_head = self._queries(gradient)
            self.add("query_gradient", by_head.mT @ by_head)
            if site.rotary:
                gains = _gain_gradients(query, by_head, site.group_size)
                self.add("gain", gains.mT @ gains)

        _on_gradient(output, on_gradient)
        return output

    def _on_input(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        x = inputs[0].detach().flatten(0, -2).float()
        self.add("input_mean", x.sum(0))
        self.add("input", x.T @ x)
        if not self.site.rotary:
            return output
        return self._on_projection("query", self.site.query, x, output)

    def _on_key(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        x = inputs[0].detach().flatten(0, -2).float()
        return self._on_projection("key", self.site.key, x, output)

    def _on_projection(
        self, role: str, projection: Projection, x: Tensor, output: Tensor
    ) -> Tensor:
        """Gradients of all heads' rows together, for factors that they share."""
        output = tracked(output)

        def on_gradient(gradient: Tensor) -> None:
            flat = paired(self.site, projection.columns(gradient)).flatten(0, -2).float()
            self.add(f"all_{role}_gradient", flat.T @ flat)
            self._add_felt(f"felt_by_{role}", x, flat)

        _on_gradient(output, on_gradient)
        return output

    def _add_felt(self, name: str, value: Tensor, gradient: Tensor) -> None:
        weight = gradient.square().sum(-1, keepdim=True)
        weighted = weight * value
        self.add(f"{name}_weight", weight.sum(-2))
        self.add(f"{name}_mean", weighted.sum(-2))
        self.add(name, weighted.mT @ value)

    def _on_context(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        dim, sequences = self.site.head_dim, inputs[0].shape[0]
        context = heads_apart(inputs[0].detach(), dim)
        self.add("context_mean", context.sum(1))
        self.add("context", context.mT @ context)
        flat = inputs[0].detach().flatten(0, -2).float()
        self.add("all_context", flat.T @ flat)

        def on_gradient(gradient: Tensor) -> None:
            by_head = heads_apart(gradient, dim)
            self.add("context_gradient", by_head.mT @ by_head)
            self._add_felt("felt_context", context, by_head)
            products = (context * by_head).sum(-1, keepdim=True)
            mean = (self.totals["context_mean"] / self.tokens).to(by_head).unsqueeze(-1)
            change = by_stretch(products - by_head @ mean, sequences, _STRETCH)
            self.add("change", change.square().log1p().sum((1, 2)))
            self.add("stretches", torch.tensor(change.shape[1]))
            whole = torch.unflatten(products, 1, (sequences, -1)).sum((2, 3))
            self.add("gate_size", whole.abs().sum(-1))
            self.add("gate_square", whole.square().sum(-1))

        _on_gradient(inputs[0], on_gradient)

    def moments(self) -> LayerMoments:
        def mean(name: str, count: int) -> Tensor:
            return self.totals[name] / count

        def felt(name: str) -> Tensor:
            weight = self.totals[f"{name}_weight"].clamp(min=1e-300)
            average = self.totals[f"{name}_mean"] / weight
            square = self.totals[name] / weight.unsqueeze(-1)
            return square - average.unsqueeze(-1) * average.unsqueeze(-2)

        tokens, units = self.tokens, self.units
        rotary = self.site.rotary
        return LayerMoments(
            context_mean=mean("context_mean", tokens),
            context=mean("context", tokens),
            context_gradient=mean("context_gradient", units),
            change=self.totals["change"] / self.totals["stretches"],
            stretches=mean("stretches", units),
            query=mean("query", tokens),
            query_gradient=mean("query_gradient", units),
            gain=mean("gain", units) if rotary else None,
            input_mean=mean("input_mean", tokens),
            input=mean("input", tokens),
            all_context=mean("all_context", tokens),
            gate_size=mean("gate_size", units),
            gate_square=mean("gate_square", units),
            all_query_gradient=mean("all_query_gradient", units) if rotary else None,
            all_key_gradient=mean("all_key_gradient", units) if rotary else None,
            felt_context=felt("felt_context"),
            felt_by_query=felt("felt_by_query") if rotary else None,
            felt_by_key=felt("felt_by_key") if rotary else None,
        )


def tracked(output: Tensor) -> Tensor:
    """The tensor as a part of a graph; a graph starts at the first layer that is measured."""
    return output if output.requires_grad else output.detach().requires_grad_()


def _on_gradient(tensor: Any, hook: Callable[[Tensor], None]) -> None:
    tensor.register_hook(hook)


def heads_apart(flat: Tensor, dim: int) -> Float[Tensor, "heads tokens dim"]:
    """What stands side by side, a head at a time, all sequences one after the other."""
    return torch.unflatten(flat.flatten(0, -2).float(), -1, (-1, dim)).transpose(0, 1)


def by_stretch(
    by_token: Float[Tensor, "heads tokens n"], sequences: int, length: int
) -> Float[Tensor, "heads stretches n"]:
    """Sums over each sequence's stretches of tokens; the last may be shorter."""
    apart = torch.unflatten(by_token, 1, (sequences, -1))
    apart = nn.functional.pad(apart, (0, 0, 0, -apart.shape[2] % length))
    return torch.unflatten(apart, 2, (-1, length)).sum(3).flatten(1, 2)


def _gain_gradients(
    query: Float[Tensor, "heads tokens dim"],
    gradient: Float[Tensor, "heads tokens dim"],
    group: int,
) -> Float[Tensor, "groups tokens gains"]:
    """∂score/∂(real, imaginary gain) of every pair, the group's heads one after the other."""
    q = torch.complex(*query.chunk(2, dim=-1))
    g = torch.complex(*gradient.chunk(2, dim=-1))
    product = q.conj() * g
    gains = torch.cat([product.real, product.imag], dim=-1)
    return torch.unflatten(gains, 0, (-1, group)).transpose(1, 2).flatten(2)


def collect_moments(
    model: nn.Module,
    sites: list[AttentionSite],
    batches: list[dict[str, Tensor]],
    objective: Objective,
    seed: int,
    on_progress: OnProgress = quiet,
    kept: Kept = NOTHING_KEPT,
    name: str = "sums",
) -> list[LayerMoments]:
    """Moments of these layers in one pass; call with as many sites as memory allows.

    Unfinished sums are kept under `name` every minute, and a pass that was stopped goes on from
    them. (Random numbers are drawn by batch, so that the result is the same.)
    """
    device = next(model.parameters()).device
    sums = [_Sums(site) for site in sites]
    begun = restored(sums, kept.read(name))
    handles = [handle for s in sums for handle in s.hook(model)]
    try:
        left = to_device(batches[begun:], device)
        on_progress(begun / len(batches), "")
        for done, inputs in enumerate(left, start=begun + 1):
            with torch.enable_grad(), evaluating(model), frozen(model):
                rng = np.random.default_rng([seed, 0, done])
                pull = objective.pull(model(**inputs), inputs, rng)
            require(
                bool(pull.tensor.isfinite().all()),
                "the model puts out numbers that are not finite: it overflows in "
                f"{pull.tensor.dtype}, or its weights are broken",
            )
            torch.autograd.backward(pull.tensor, pull.gradient)
            for s in sums:
                s.units += pull.units
            if kept.due and done < len(batches):
                kept.write(stored(sums, done), name)
            on_progress(done / len(batches), "")
    finally:
        for handle in handles:
            handle.remove()
    return [s.moments() for s in sums]
