"""Does a network meet assumption 1 of the head-count paper, which its lower bound is proved under?

‖P_φ(x, t)‖₂ ≤ 1 for the embedded tokens; a readout of two layers with a 1-Lipschitz activation; all
entries of the readout and of the attention matrices at most 1 in size. Scores are β (W_Q c_0)ᵀW_K x
there, with a β as large as one likes: whatever the size of a query or key map, it can be divided by
it and β multiplied, so that their entries are no condition. Those of the value and output maps are.
"""

from dataclasses import replace
from math import inf, isfinite, isnan

import numpy as np
import torch
from torch import Tensor

from headwise.build._witness import in_double_precision
from headwise.build.budget import check_box
from headwise.core.errors import require
from headwise.nets import ClassTokenNet
from headwise.tasks.assumptions import Assumption
from headwise.theory.checks import shown

_SAMPLES = 4096
_GELU = "GELU's slope reaches 1.13"


def check_network_assumptions(
    net: ClassTokenNet, box: tuple[float, float] = (0.0, 1.0)
) -> list[Assumption]:
    """Assumption 1 and the shape of the theorem's networks, one by one, on tokens of the box."""
    require(isinstance(net, ClassTokenNet), f"net must be a ClassTokenNet, not {shown(net)}")
    low, high = check_box(box)
    exact = in_double_precision(net)
    return [
        _form(exact),
        _encoder_norm(exact, low, high),
        _readout_layers(exact),
        _activation(exact),
        _entries(exact, "the readout's entries are at most 1", ("readout",)),
        _sharpness(exact),
        _entries(exact, "the value and output maps' entries are at most 1", ("value", "out")),
    ]


def _form(net: ClassTokenNet) -> Assumption:
    shape = net.shape
    extra = [
        words
        for words, there in (
            (f"{len(shape.layers)} attention layers", len(shape.layers) > 1),
            ("a layer norm", shape.norm),
            ("the class token as a key", shape.class_token_is_key),
        )
        if there
    ]
    why = "it has " + ", ".join(extra) if extra else "one attention layer over the tokens, no norm"
    return Assumption("the network is of the theorem's form", not extra, why)


def _encoder_norm(net: ClassTokenNet, low: float, high: float) -> Assumption:
    """An interval bound from above, samples and corners from below; between them it stays open."""
    name = "the embedded tokens have norm at most 1"
    params = {key: value.detach().numpy() for key, value in net.named_parameters()}
    upper = _embedding_reach(net, params, low, high)
    found = _largest_seen(net, low, high)
    if not found <= 1:
        return Assumption(name, False, f"a token is embedded with norm {found:.4g}")
    if upper <= 1:
        return Assumption(name, True, f"at most {upper:.4g} by intervals")
    return Assumption(name, None, f"samples reach {found:.4g}, intervals allow {upper:.4g}")


def _embedding_reach(
    net: ClassTokenNet, params: dict[str, np.ndarray], low: float, high: float
) -> float:
    shape = net.shape
    centre = np.full(shape.token_dim, (low + high) / 2)
    radius = np.full(shape.token_dim, (high - low) / 2)
    table = params.get("positions", np.zeros((1, 1)))
    for index in range(len(shape.embed.widths) + 1):
        weight, bias = params[f"embed.{index}.weight"], params[f"embed.{index}.bias"]
        centre, radius = weight @ centre + bias, np.abs(weight) @ radius
        last = index == len(shape.embed.widths)
        here = "add" if last else "concat"
        if shape.positions and shape.position_kind == here and (last or index == 0):
            centre = centre + (table.max(0) + table.min(0)) / 2
            radius = radius + (table.max(0) - table.min(0)) / 2
        if not last:  # ReLU and GELU rise beyond their minima: −0.17 is GELU's
            floor = 0.0 if shape.embed.activation == "relu" else -0.17
            top = np.maximum(centre + radius, 0)
            bottom = np.maximum(centre - radius, floor) if floor == 0 else np.full_like(top, floor)
            centre, radius = (top + bottom) / 2, (top - bottom) / 2
    return float(np.linalg.norm(np.abs(centre) + radius)) * (1 + 1e-12)


def _largest_seen(net: ClassTokenNet, low: float, high: float) -> float:
    """Of sampled tokens and corners of the box, at every position."""
    rng = np.random.default_rng([0xA1, net.shape.token_dim])
    length = max(1, net.shape.positions)
    shape = (max(1, _SAMPLES // length), length, net.shape.token_dim)
    drawn = rng.random(shape)
    drawn[::2] = np.round(drawn[::2])
    tokens = torch.from_numpy(low + (high - low) * drawn)
    first = replace(net.shape, layers=net.shape.layers[:1])  # tokens as the first layer finds them
    stream: Tensor = first._before_last_layer(net.stacked_parameters(), tokens.unsqueeze(0))
    return float(stream[0, :, :-1].norm(dim=-1).max())


def _readout_layers(net: ClassTokenNet) -> Assumption:
    layers = len(net.shape.readout.widths) + 1
    return Assumption("the readout has two layers", layers == 2, f"it has {layers}")


def _activation(net: ClassTokenNet) -> Assumption:
    kind = net.shape.readout.activation
    why = _GELU if kind == "gelu" else f"{kind} is"
    return Assumption("the readout's activation is 1-Lipschitz", kind == "relu", why)


def _sharpness(net: ClassTokenNet) -> Assumption:
    where, largest = _largest_entry(net, ("query", "key"))
    return Assumption(
        "the query and key maps' entries are at most 1, but for a factor β",
        isfinite(largest),
        f"β may be as large as one likes; the largest is {largest:.4g}, in {where}",
    )


def _entries(net: ClassTokenNet, name: str, parts: tuple[str, ...]) -> Assumption:
    where, largest = _largest_entry(net, parts)
    return Assumption(name, largest <= 1, f"the largest is {largest:.4g}, in {where}")


def _largest_entry(net: ClassTokenNet, parts: tuple[str, ...]) -> tuple[str, float]:
    """Of the parameters with one of these words in their name: which is the largest, and it."""
    sizes = {
        name: float(weights.abs().max())
        for name, weights in net.named_parameters()
        if not set(parts).isdisjoint(name.split("."))
    }
    return max(sizes.items(), key=lambda item: inf if isnan(item[1]) else item[1])
