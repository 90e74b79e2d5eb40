"""Watch attention layers at work: their queries, keys and values, one layer and batch at a time."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from headwise.core.progress import OnProgress, quiet
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.text.calibration import to_device


@dataclass
class Observed:
    """One batch in one layer, before RoPE. Without padding, so causality is the only mask."""

    site: AttentionSite
    query: Float[Tensor, "b heads t dim"]
    key: Float[Tensor, "b groups t dim"]
    value: Float[Tensor, "b groups t dim"]
    rotation: tuple[Tensor, Tensor] | None

    def scores(self, query: Tensor | None = None, key: Tensor | None = None) -> Tensor:
        """Masked scores, with other queries or keys in place of the layer's own if given."""
        q = self._turned(self.query if query is None else query)
        k = self._turned(self.key if key is None else key)
        k = k.repeat_interleave(self.site.group_size, dim=1)
        scores = q @ k.mT * self.site.scaling
        hidden = self.hidden()
        return scores if hidden is None else scores.masked_fill(hidden, -math.inf)

    def attend(self, weights: Float[Tensor, "b heads t t"]) -> Float[Tensor, "b heads t dim"]:
        """The heads' contexts under these attention weights."""
        return weights @ self.value.repeat_interleave(self.site.group_size, dim=1)

    def hidden(self) -> Bool[Tensor, "t t"] | None:
        """Which keys a query may not see."""
        if not self.site.causal:
            return None
        steps = torch.arange(self.query.shape[2], device=self.query.device)
        distance = steps[:, None] - steps[None, :]
        hidden = distance < 0
        if self.site.sliding_window is not None:
            hidden |= distance >= self.site.sliding_window
        return hidden

    def _turned(self, heads: Tensor) -> Tensor:
        if self.rotation is None:
            return heads
        cos, sin = (table.float().unsqueeze(1) for table in self.rotation)
        first, second = heads.chunk(2, dim=-1)
        return heads * cos + torch.cat((-second, first), dim=-1) * sin


@torch.no_grad()
def observe(
    model: nn.Module,
    sites: list[AttentionSite],
    batches: list[dict[str, Tensor]],
    look: Callable[[int, Observed], None],
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
                heads = p.columns(output).float().unflatten(-1, (-1, site.head_dim))
                seen[layer, role] = heads.transpose(1, 2)

            handles.append(model.get_submodule(projection.path).register_forward_hook(keep))

        def start(module: nn.Module, inputs: Any, options: dict[str, Any]) -> None:
            seen[layer, "rotation"] = options.get("position_embeddings") if site.rotary else None

        def finish(module: nn.Module, inputs: Any, output: Any) -> None:
            parts = [seen.pop((layer, role)) for role in ("query", "key", "value", "rotation")]
            look(layer, Observed(site, *parts))

        attention = model.get_submodule(site.path)
        handles.append(attention.register_forward_pre_hook(start, with_kwargs=True))
        handles.append(attention.register_forward_hook(finish))

    for layer, site in enumerate(sites):
        watch(layer, site)
    training = model.training
    model.eval()
    body = getattr(model, "base_model", model)  # the output head is not needed
    try:
        device = next(model.parameters()).device
        for done, inputs in enumerate(to_device(batches, device), start=1):
            body(**{name: value for name, value in inputs.items() if name != "labels"})
            on_progress(done / len(batches), "")
    finally:
        for handle in handles:
            handle.remove()
        model.train(training)
