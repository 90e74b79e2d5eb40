"""Whether a model computes attention as its adapter says; if not, it would be damaged silently."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from headwise.core.errors import InputError, require
from headwise.pretrained.adapters import AttentionSite, LinearPart, read_weights
from headwise.pretrained.adapters.mechanism import paired
from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.measure.observe import Observed, observe
from headwise.pretrained.text.calibration import few_tokens, to_device

_LENGTH = 256
_TOLERANCE = 0.05  # of the norm: half precision differs by a hundredth


@torch.no_grad()
def prepare(model: Any, objective: Objective, batches: list[dict[str, Tensor]]) -> None:
    """Prepare the objective; refuse, with the model's own words, what it cannot read or judge."""
    inputs = next(to_device(batches[:1], next(model.parameters()).device))
    named = ", ".join(inputs)
    try:
        outputs = model(**inputs)
    except Exception as error:
        raise InputError(
            f"{type(model).__name__} does not run as it is, before anything is cut, on such inputs "
            f"({named}): {_words(error)}"
        ) from error
    try:
        objective.prepare(model, batches)
        objective.compare(outputs, outputs, inputs)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{type(model).__name__} cannot be judged by {objective.name} on such inputs "
            f"({named}): {_words(error)}"
        ) from error


def _words(error: Exception) -> str:
    return str(error).strip() or type(error).__name__


def require_described(
    model: Any, sites: list[AttentionSite], batches: list[dict[str, Tensor]]
) -> None:
    """Refuse a model whose layers do something else than what is said of them.

    What each layer gives its output projection is computed again from its projections, and these
    from their weights, on a short sequence.
    """
    seen_layers = set()

    def look(layer: int, seen: Observed) -> None:
        seen_layers.add(layer)
        again = seen.attend(seen.scores().softmax(-1)).transpose(1, 2).flatten(2)
        off = _apart(again, seen.context)
        require(
            not off > _TOLERANCE,
            f"{seen.site.path} does not compute what is known of its family: its heads' outputs "
            f"differ by {100 * off:.0f} %. The model has something between projections and scores "
            "that its adapter does not describe, or the batches have padding; it would be damaged "
            "silently, so it is refused (docs/adapters.md says what an adapter can describe)",
        )

    handles = [handle for site in sites for handle in _watched_projections(model, site)]
    try:
        observe(model, sites, few_tokens(batches, _LENGTH, _LENGTH)[:1], look)
    finally:
        for handle in handles:
            handle.remove()
    for layer, site in enumerate(sites):
        require(
            layer in seen_layers,
            f"{site.path} is not computed when the model reads the calibration batches, so nothing "
            "can be said about it; give batches with all of the model's inputs",
        )


def _watched_projections(model: Any, site: AttentionSite) -> list[Any]:
    """Hooks that compare what each projection puts out with what its weights say."""

    def watch(path: str, role: str, columns: Callable[[Tensor], Tensor]) -> Any:
        def compare(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            part: LinearPart = getattr(read_weights(model, site), role)
            said = inputs[0].float() @ part.weight.T.to(inputs[0].device)
            if part.bias is not None:
                said = said + part.bias.to(said.device)
            off = _apart(said, columns(output).float())
            require(
                not off > _TOLERANCE,
                f"{path} puts out something else than its weight and bias say (by "
                f"{100 * off:.0f} %): an adapter, a hook or a quantisation is in the way; merge or "
                "remove it first",
            )

        return model.get_submodule(path).register_forward_hook(compare)

    return [
        watch(site.query.path, "query", lambda y: paired(site, site.query.columns(y))),
        watch(site.key.path, "key", lambda y: paired(site, site.key.columns(y))),
        watch(site.value.path, "value", site.value.columns),
        watch(site.output, "output", lambda y: y),
    ]


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm() / other.norm().clamp(min=1e-30))
