"""Watch attention layers at work: their queries, keys and values, one layer and batch at a time."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.adapters.calls import given_bias, made_bias, named, rotation
from headwise.pretrained.adapters.mechanism import angles, capped, hidden, normed, paired, turned
from headwise.pretrained.model.mode import evaluating
from headwise.pretrained.text.calibration import to_device


@dataclass
class Observed:
    """One batch in one layer. Without padding, so causality is the only mask.

    `projected` are queries and keys as projected; `query` and `key` after the layer's norm, if it
    has one, and before RoPE. `context` is what the model itself made of them, heads side by side.
    """

    site: AttentionSite
    projected: dict[str, Tensor]  # each (b, heads, t, dim); keys' t is a second sequence's, if so
    value: Float[Tensor, "b groups s dim"]
    rotation: tuple[Tensor, Tensor] | None
    bias: Tensor | None
    norms: dict[str, nn.Module]
    context: Float[Tensor, "b t width"]

    def __post_init__(self) -> None:
        self.query = self.normed("query", self.projected["query"])
        self.key = self.normed("key", self.projected["key"])

    def normed(self, role: str, heads: Tensor) -> Float[Tensor, "b heads t dim"]:
        """Projected queries or keys of all heads after the layer's norm."""
        norm = self.site.norm
        return normed(self.norms.get(role), norm is not None and norm.whole_layer, heads)

    def scores(self, query: Tensor | None = None, key: Tensor | None = None) -> Tensor:
        """Masked scores, with other queries or keys in place of the layer's own if given."""
        q = self._turned(self.query if query is None else query)
        k = self._turned(self.key if key is None else key)
        k = k.repeat_interleave(self.site.group_size, dim=1)
        scores = capped(q @ k.mT * self.site.scaling, self.site.soft_cap)
        if self.bias is not None:
            scores = scores + self.bias
        unseen = hidden(self.site, q.shape[2], k.shape[2], q.device)
        return scores if unseen is None else scores.masked_fill(unseen, -math.inf)

    def attend(self, weights: Float[Tensor, "b heads t s"]) -> Float[Tensor, "b heads t dim"]:
        """The heads' contexts under these attention weights."""
        return weights @ self.value.repeat_interleave(self.site.group_size, dim=1)

    def first(self, length: int) -> "Observed":
        """The same had the inputs ended after so many tokens, as a causal model shows it."""
        turns, bias = self.rotation, self.bias
        return replace(
            self,
            projected={role: heads[:, :, :length] for role, heads in self.projected.items()},
            value=self.value[:, :, :length],
            rotation=None if turns is None else (turns[0][:, :length], turns[1][:, :length]),
            bias=None if bias is None else bias[..., :length, :length],
            context=self.context[:, :length],
        )

    def _turned(self, heads: Tensor) -> Tensor:
        if self.rotation is None:
            return heads
        cos, sin = (table.float().unsqueeze(1) for table in angles(self.site, self.rotation))
        return turned(heads, cos, sin)


Look = Callable[[int, Observed], None]  # what is called with a layer and what it shows


@torch.no_grad()
def observe(
    model: nn.Module,
    sites: list[AttentionSite],
    batches: list[dict[str, Tensor]],
    look: Look,
    on_progress: OnProgress = quiet,
) -> None:
    """Run the batches; `look(layer, observed)` is called for each of them in every layer.

    What is being done is for the caller to say (see `part_of`).
    """
    seen: dict[tuple[int, str], Any] = {}
    handles = []

    def watch(layer: int, site: AttentionSite) -> None:
        for role in ("query", "key", "value"):
            projection = getattr(site, role)

            def keep(
                module: nn.Module,
                inputs: Any,
                output: Tensor,
                role: str = role,
                p: Any = projection,
            ) -> None:
                flat = p.columns(output).float()
                flat = flat if role == "value" else paired(site, flat)
                seen[layer, role] = flat.unflatten(-1, (-1, site.head_dim)).transpose(1, 2)

            handles.append(model.get_submodule(projection.path).register_forward_hook(keep))

        norms = {} if site.norm is None else {"query": site.norm.query, "key": site.norm.key}
        modules = {role: model.get_submodule(path) for role, path in norms.items()}
        names = list(inspect.signature(model.get_submodule(site.path).forward).parameters)

        def start(module: nn.Module, inputs: Any, options: dict[str, Any]) -> None:
            given = named(names, inputs, options)
            seen[layer, "rotation"] = rotation(site, given)
            seen[layer, "bias"] = given_bias(site, given)
            seen[layer, "hidden"] = given["hidden_states"]

        def before_output(module: nn.Module, inputs: Any) -> None:
            seen[layer, "context"] = inputs[0]

        def finish(module: nn.Module, inputs: Any, output: Any) -> None:
            context = seen.pop((layer, "context")) if site.output_inside else output[0]
            pair = {role: seen.pop((layer, role)) for role in ("query", "key")}
            value, turns, bias, states = (
                seen.pop((layer, role)) for role in ("value", "rotation", "bias", "hidden")
            )
            keys = value.shape[2]
            if site.position_bias and bias is None:
                bias = made_bias(module, site.heads, states, keys)
            bias = None if bias is None else bias[..., -keys:].float()
            look(layer, Observed(site, pair, value, turns, bias, modules, context.float()))

        attention = model.get_submodule(site.path)
        handles.append(attention.register_forward_pre_hook(start, with_kwargs=True))
        handles.append(attention.register_forward_hook(finish))
        if site.output_inside:
            output = model.get_submodule(site.output)
            handles.append(output.register_forward_pre_hook(before_output))

    for layer, site in enumerate(sites):
        watch(layer, site)
    body = _without_vocabulary(model)
    try:
        device = next(model.parameters()).device
        with evaluating(model):
            for done, inputs in enumerate(to_device(batches, device), start=1):
                body(**{name: value for name, value in inputs.items() if name != "labels"})
                on_progress(done / len(batches), "")
    finally:
        for handle in handles:
            handle.remove()


def _without_vocabulary(model: Any) -> Any:
    """The part that computes all attention; a head over a vocabulary costs more than it shows."""
    output = getattr(model, "get_output_embeddings", lambda: None)()
    return model if output is None else model.base_model
