"""Take away the head that is missed least, and let the others make up for it.

With o_j the outputs of the heads, the class token is b + Σ_j W_j o_j. To remove head i, its output
is predicted from the others' by least squares, o_i ≈ Σ_{j≠i} A_j o_j + a, and the prediction is
folded into what stays: W_j + W_i A_j and b + W_i a. A head that only repeats what others know
is removed without any loss; a head that alone holds a feature is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.nets import ClassTokenShape
from headwise.training.samples.engine import Dataset
from headwise.training.samples.specification import Loss
from headwise.training.samples.stacked import member_loss

_RIDGE = 1e-6  # of the mean square of the outputs: heads may be exact copies of each other
_OUT = "layers.0.out"


@dataclass(frozen=True)
class Removal:
    """A network with one head fewer, and its loss before and after, without further training."""

    shape: ClassTokenShape
    params: dict[str, Tensor]
    loss_before: float
    loss_after: float

    @property
    def cost(self) -> float:
        """Factor by which the loss grew."""
        return self.loss_after / max(self.loss_before, 1e-12)


def with_heads(shape: ClassTokenShape, heads: int) -> ClassTokenShape:
    """The same one-layer network with another number of heads."""
    return replace(shape, layers=(replace(shape.layers[0], heads=heads),))


def head_outputs(
    shape: ClassTokenShape, params: Mapping[str, Tensor], inputs: Tensor
) -> Float[Tensor, "batch heads v_dim"]:
    """What every head hands to the output map."""
    layer = shape.layers[0]
    double = {name: value.double()[None] for name, value in params.items()}
    with torch.no_grad():
        outputs = shape.head_outputs(double, inputs.double()[None])[0]
    return outputs.unflatten(1, (layer.heads, layer.v_dim))


def remove_head(
    shape: ClassTokenShape, params: Mapping[str, Tensor], data: Dataset, loss: Loss
) -> Removal:
    """The best network that has one head fewer, by the loss on `data`."""
    outputs = head_outputs(shape, params, data.inputs)
    heads = outputs.shape[1]
    fits = [_fit(outputs, head) for head in range(heads)]
    variants = outputs.repeat(heads + 1, 1, 1, 1)  # one without each head, and the whole
    for head, fit in enumerate(fits):
        variants[head, :, head] = _design(outputs, head) @ fit
    losses = _losses(shape, params, variants, data.targets, loss)
    head = int(losses[:-1].argmin())
    return Removal(
        with_heads(shape, heads - 1),
        _without(shape, params, head, fits[head]),
        float(losses[-1]),
        float(losses[head]),
    )


def _design(outputs: Tensor, head: int) -> Float[Tensor, "batch predictors"]:
    """The other heads' outputs and a constant."""
    others = torch.cat([outputs[:, :head], outputs[:, head + 1 :]], 1).flatten(1)
    return (
        torch.cat([others, torch.ones_like(others[:, :1])], 1)
        if others.numel()
        else torch.ones(len(outputs), 1, dtype=outputs.dtype)
    )


def _fit(outputs: Tensor, head: int) -> Float[Tensor, "predictors v_dim"]:
    design = _design(outputs, head)
    gram = design.mT @ design
    gram = gram + _RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    return torch.linalg.solve(gram, design.mT @ outputs[:, head])


def _losses(
    shape: ClassTokenShape,
    params: Mapping[str, Tensor],
    variants: Float[Tensor, "variants batch heads v_dim"],
    targets: Tensor,
    loss: Loss,
) -> Float[Tensor, " variants"]:
    double = {name: value.double()[None] for name, value in params.items()}
    mixed = variants.flatten(2) @ double[f"{_OUT}.weight"][0].mT + double[f"{_OUT}.bias"][0]
    with torch.no_grad():
        answers = shape.read_out(double, mixed.flatten(0, 1)[None])[0]
    return member_loss(answers.unflatten(0, variants.shape[:2]), targets.double()[None], loss)


def _without(
    shape: ClassTokenShape, params: Mapping[str, Tensor], head: int, fit: Tensor
) -> dict[str, Tensor]:
    layer = shape.layers[0]
    keep = [index for index in range(layer.heads) if index != head]
    left = dict(params)
    for part, size in (("query", layer.qk_dim), ("key", layer.qk_dim), ("value", layer.v_dim)):
        for name in (f"layers.0.{part}.weight", f"layers.0.{part}.bias"):
            by_head = params[name].unflatten(0, (layer.heads, size))
            left[name] = by_head[keep].flatten(0, 1).contiguous()
    mixing = params[f"{_OUT}.weight"].double().unflatten(1, (layer.heads, layer.v_dim))
    lost = mixing[:, head]  # W_i
    left[f"{_OUT}.weight"] = (mixing[:, keep].flatten(1) + lost @ fit[:-1].mT).float().contiguous()
    left[f"{_OUT}.bias"] = (params[f"{_OUT}.bias"].double() + lost @ fit[-1]).float()
    return left
