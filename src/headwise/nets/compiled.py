"""What is computed by compiled code on this machine, and what by torch.

On a CPU, in float32, attention, GELU, norms, maps to one number and cross-entropy are compiled
(`headwise.core.compiled`); where that does not work, and on any other device, torch computes them.

The RMS norm with a gain, backwards:

    n = x/√(mean x² + ε),   y = γ ⊙ n,   means over the last axis
    ∂x = (γ ⊙ ∂y − n mean(γ ⊙ ∂y ⊙ n))/√(mean x² + ε),   ∂γ = Σ ∂y ⊙ n

torch has no kernel for it on a CPU: its own is a row of operations, of which autograd keeps and
reads again more than twice as many arrays as there are here.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from headwise.core.lazy import named

_EPSILON = 1e-6

Norm = tuple[Literal["length", "layer"], Tensor, Tensor | None]
"""A norm of tokens: its kind, the members' gains, and their shifts if it has any."""


class Compiled(NamedTuple):
    """Compiled steps of autograd."""

    read_heads: Callable[..., Tensor]
    gelu: Callable[[Tensor], Tensor]
    rms_norm: Callable[[Tensor, Tensor], Tensor]
    sub_layer: Callable[..., Tensor]
    read_one: Callable[..., Tensor]
    cross_entropy: Callable[[Tensor, Tensor], Tensor]
    lanes: int  # numbers in a vector


def compiled_for(values: Tensor) -> Compiled | None:
    """The compiled steps, if they can be taken on such numbers."""
    if values.device.type != "cpu" or values.dtype != torch.float32:
        return None
    found = compiled()
    return None if isinstance(found, str) else found


def computed_by(device: str) -> str:
    """What computes attention on a device, in words for a record."""
    if device != "cpu":
        return "attention by torch"
    found = compiled()
    return f"attention by torch: {found}" if isinstance(found, str) else "attention compiled"


@cache
def compiled() -> Compiled | str:
    """The compiled steps, or why they do not work on this machine."""
    try:
        steps = named("headwise.core.compiled.heads")  # where numba cannot be imported, torch does
        activations = named("headwise.core.compiled.activations")
        layers = named("headwise.core.compiled.sublayers")
        readout = named("headwise.core.compiled.readout")
        entropy = named("headwise.core.compiled.entropy")
        with torch.inference_mode(False), torch.enable_grad():  # whoever asks first may have none
            for module in (steps, activations, layers, readout, entropy):
                module.try_out()
    except Exception as error:  # whatever goes wrong there
        return f"the compiled attention does not work here: {type(error).__name__}: {error}"
    rows = activations.gelu, activations.rms_norm
    of_layers = layers.sub_layer, readout.read_one, entropy.cross_entropy
    return Compiled(steps.read_heads, *rows, *of_layers, activations.LANES)


def cross_entropy(
    logits: Float[Tensor, "*rows vocabulary"], wanted: Int[Tensor, "*rows"]
) -> Float[Tensor, "*rows"]:
    """−log softmax(logits) of the wanted number, for each row."""
    steps = compiled_for(logits)
    if steps is not None:
        return steps.cross_entropy(logits, wanted)
    flat = functional.cross_entropy(logits.flatten(0, -2), wanted.flatten(), reduction="none")
    return flat.view(wanted.shape)


def normal(
    stream: Float[Tensor, "members batch length width"],
    kind: Literal["length", "layer"],
    gain: Float[Tensor, "members size"],
    shift: Float[Tensor, "members width"] | None,
) -> Float[Tensor, "members batch length width"]:
    """Tokens scaled to length one times a number, or their layer norm, by torch."""
    gain = gain[:, None, None]
    if kind == "length":
        length = torch.linalg.vector_norm(stream, dim=-1, keepdim=True)
        return stream * (gain / length.clamp_min(1e-12))
    assert shift is not None
    return torch.addcmul(
        shift[:, None, None], functional.layer_norm(stream, stream.shape[-1:]), gain
    )


def read_one(
    stream: Float[Tensor, "members batch length width"],
    weight: Float[Tensor, "members 1 width"],
    bias: Float[Tensor, "members 1"],
    norm: Norm | None,
) -> Float[Tensor, "members batch length 1"]:
    """One number a token, after the norm: a sum in one order, whoever is computed beside."""
    steps = compiled_for(stream)
    if steps is not None:
        return steps.read_one(stream, weight, bias, norm)
    read = stream if norm is None else normal(stream, *norm)
    return (read * weight[:, None]).sum(-1, keepdim=True) + bias[:, None, None]


def gelu(values: Tensor) -> Tensor:
    """x·Φ(x)."""
    steps = compiled_for(values)
    return functional.gelu(values) if steps is None else steps.gelu(values)


def rms_norm(
    vectors: Float[Tensor, "*batch size"], gain: Float[Tensor, "*#batch size"]
) -> Float[Tensor, "*batch size"]:
    """γ ⊙ x/RMS(x), for each vector x; compiled where a member has one gain, of whole vectors."""
    steps, size = compiled_for(vectors), vectors.shape[-1]
    shared = gain.numel() == gain.shape[0] * size and gain.shape[0] == vectors.shape[0]
    if steps and shared and vectors.numel() and size % steps.lanes == 0:
        return steps.rms_norm(vectors, gain.flatten(1))
    normed: Tensor = _RmsNorm.apply(vectors, gain)
    return normed


class _RmsNorm(torch.autograd.Function):
    """(x, γ) → y; see the module's top for the formulas."""

    @staticmethod
    def forward(
        ctx: Any, vectors: Float[Tensor, "*batch size"], gain: Float[Tensor, "*#batch size"]
    ) -> Float[Tensor, "*batch size"]:
        """The normed vectors."""
        length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
        inverse = torch.rsqrt(length.square_().div_(vectors.shape[-1]).add_(_EPSILON))
        ctx.save_for_backward(vectors, gain, inverse)
        return (vectors * inverse).mul_(gain)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Float[Tensor, "*batch size"]) -> tuple[Tensor, Tensor]:
        """The gradients of x and γ."""
        vectors, gain, inverse = ctx.saved_tensors
        normal = vectors * inverse
        by_gain = grad * normal
        gain_grad = by_gain.sum_to_size(gain.shape)
        mean = by_gain.mul_(gain).mean(-1, keepdim=True)
        return (grad * gain).addcmul_(normal, mean, value=-1).mul_(inverse), gain_grad
