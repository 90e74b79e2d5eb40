"""How a model is computed while it is looked at: without dropout, in a quick enough precision.

Most CPUs have no arithmetic of sixteen bits. One that was tried took three times as long for
bfloat16 as for float32, and thirty-five times for float16. A number of sixteen bits is one of
thirty-two as well, so a widened model says what the original says, only more exactly. It remembers
the types that its numbers had; what is made of it is rounded to them before it is judged, so that
the verdict is about what is written.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headwise.core.memory import free_bytes

_HALF = (torch.float16, torch.bfloat16)
_TYPES = "_headwise_types"  # of a widened model's numbers, by name; copies of the model have it too
_COPIES = 3  # of the widened model that must fit: itself, a smaller one, and room to work


@contextmanager
def evaluating(*models: nn.Module) -> Iterator[None]:
    """In evaluation mode for as long; afterwards every module is in the mode it was in."""
    modes = [(module, module.training) for model in models for module in model.modules()]
    if any(training for _, training in modes):  # to set all is slow, and mostly they are set
        for model in models:
            model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            if module.training is not training:
                module.training = training


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Without gradients for weights for as long; afterwards those that had them have them again."""
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trainable:
            parameter.requires_grad_()


def widened(model: Any, *, in_place: bool = False) -> Any:
    """The model in float32 if it is in half precision, on a CPU, and there is memory for it.

    That is a copy, unless in place; any other model is given back as it is.
    """
    tensors = dict(_numbers(model))
    half = any(tensor.dtype in _HALF for tensor in tensors.values())
    near = all(tensor.device.type == "cpu" for tensor in tensors.values())
    room = 4 * _COPIES * sum(tensor.numel() for tensor in tensors.values())
    if not (half and near and room <= free_bytes()):
        return model
    wide = model if in_place else copy.deepcopy(model)
    setattr(wide, _TYPES, _types(wide))
    _converted(wide, {name: torch.float32 for name, each in tensors.items() if each.dtype in _HALF})
    return wide


def rounded(model: Any) -> Any:
    """The same model; if it was widened, with the values that its own precision has for them."""
    types = _own_types(model)
    _converted(model, types)
    _converted(model, {name: torch.float32 for name, own in types.items() if own in _HALF})
    return model


def narrowed(model: Any) -> Any:
    """The same model; if it was widened, in its own precision again."""
    _converted(model, _own_types(model))
    if is_widened(model):
        delattr(model, _TYPES)
    return model


def as_exact(smaller: Any, model: Any) -> Any:
    """The smaller model with the types of the model's numbers; widened if the model is."""
    wide = getattr(model, _TYPES, None)
    setattr(smaller, _TYPES, wide or _types(model))
    return narrowed(smaller) if wide is None else rounded(smaller)


def is_widened(model: Any) -> bool:
    """Whether the model is computed in another precision than its own."""
    return hasattr(model, _TYPES)


def computed_in(model: Any) -> str:
    """That times are not those of the model's own precision, if so."""
    return ", in float32" if is_widened(model) else ""


def number_bytes(model: Any) -> int:
    """What one number of the model takes where it is kept: a widened one's as it was."""
    types = getattr(model, _TYPES, None)
    own: torch.dtype = next(model.parameters()).dtype if types is None else types[""]
    return own.itemsize


def _types(model: nn.Module) -> dict[str, torch.dtype]:
    """By name; under the name of a module, and "" for the whole model, that of its first number."""
    types: dict[str, torch.dtype] = {}
    for name, tensor in _numbers(model):
        types[name] = tensor.dtype
        while name:
            name = name.rpartition(".")[0]
            types.setdefault(name, tensor.dtype)
    return types


def _own_types(model: nn.Module) -> dict[str, torch.dtype]:
    """What was remembered; what is new has the type of what is nearest."""
    known: dict[str, torch.dtype] = getattr(model, _TYPES, {})
    found = {}
    for name, _ in _numbers(model) if known else ():
        nearest = name
        while nearest not in known:
            nearest = nearest.rpartition(".")[0]
        found[name] = known[nearest]
    return found


def _numbers(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers that are no integers, shared ones under one name."""
    for named in (model.named_parameters(), model.named_buffers()):
        yield from ((name, tensor) for name, tensor in named if tensor.is_floating_point())


@torch.no_grad()
def _converted(model: nn.Module, types: dict[str, torch.dtype]) -> None:
    """Give these numbers these types, one by one; what is shared stays shared."""
    for name, tensor in list(_numbers(model)):
        if name in types:
            tensor.data = tensor.data.to(types[name])
