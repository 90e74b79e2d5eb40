"""The one way to write a network: a shape that is data, and a module that holds its weights.

A shape knows its parameters, how they start, and the function of stacked parameters that they
make (`NetShape`). A `Net` is a torch module around a shape: call it, train it, save it, load it.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from headwise.core.errors import InputError, require
from headwise.core.files import appearing, is_file, read_spec, write_file
from headwise.core.spec import to_data
from headwise.nets.shape import AttentionShape

CONFIG, WEIGHTS = "config.json", "model.safetensors"


@runtime_checkable
class NetShape(Protocol):
    """What a network's specification must say. Parameters of `forward` are stacked."""

    @property
    def attention_layers(self) -> tuple[AttentionShape, ...]:
        """The attention layers, for tables."""
        ...

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every parameter, in the order in which they are initialised."""
        ...

    def params(self) -> dict[str, int]:
        """How many parameters, by part and in total."""
        ...

    def initial_params(self, seed: int) -> dict[str, Tensor]:
        """Fresh weights of one network: a function of shape and seed, equal on every machine."""
        ...

    def forward(self, params: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
        """Member m's outputs on inputs[m], or on the one input that all members share."""
        ...


class LayeredShape(ABC):
    """What shapes share whose attention layers are the field `layers`."""

    layers: tuple[AttentionShape, ...]

    @property
    def attention_layers(self) -> tuple[AttentionShape, ...]:
        """The attention layers, for tables."""
        return self.layers

    @abstractmethod
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every parameter, in the order in which they are initialised."""

    def params(self) -> dict[str, int]:
        """Parameters: those of attention (its four maps, with biases) and all."""
        sizes = self.parameter_shapes()
        attention = (size for name, size in sizes.items() if ".qkv." in name or ".out." in name)
        return {"attention": sum(map(prod, attention)), "total": sum(map(prod, sizes.values()))}


@runtime_checkable
class PenalisedShape(Protocol):
    """A network whose training adds to the error, as the balance loss of a mixture does."""

    def penalised_forward(
        self, params: Mapping[str, Tensor], inputs: Tensor
    ) -> tuple[Tensor, Tensor | float]:
        """The outputs, and each member's penalty."""
        ...


@runtime_checkable
class TokenNetShape(NetShape, Protocol):
    """A network from tokens of `token_dim` numbers to outputs of `outputs` numbers."""

    @property
    def token_dim(self) -> int:
        """Numbers in a token."""
        ...

    @property
    def outputs(self) -> int:
        """Numbers in an answer."""
        ...


ShapeT = TypeVar("ShapeT", bound=NetShape)


class Net(nn.Module, Generic[ShapeT]):
    """A network of a given shape, with fresh weights of `seed` or the weights given."""

    shape_type: ClassVar[type[Any]]
    described: ClassVar[str]

    def __init__(
        self, shape: ShapeT, params: Mapping[str, Tensor] | None = None, seed: int = 0
    ) -> None:
        super().__init__()
        self.shape = shape
        params = shape.initial_params(seed) if params is None else params
        sizes = shape.parameter_shapes()
        require(params.keys() == sizes.keys(), "the weights' names do not fit the shape")
        for name, size in sizes.items():
            found = tuple(params[name].shape)
            require(found == size, f"{name} has shape {found}; the network's is {size}")
            *path, leaf = name.split(".")
            module: nn.Module = self
            for part in path:
                if part not in module._modules:
                    module.add_module(part, nn.Module())
                module = module.get_submodule(part)
            module.register_parameter(leaf, nn.Parameter(params[name].detach().clone()))

    def forward(
        self, inputs: Shaped[Tensor, "batch length *token"]
    ) -> Float[Tensor, "batch *outputs"]:
        """The outputs on a batch of sequences."""
        return self.shape.forward(self.stacked_parameters(), inputs.unsqueeze(0)).squeeze(0)

    def stacked_parameters(self) -> dict[str, Tensor]:
        """The weights with the axis of members that the shape's functions expect."""
        return {name: value.unsqueeze(0) for name, value in self.named_parameters()}

    def save_pretrained(self, folder: str | Path) -> None:
        """Write shape and weights; each file appears whole or not at all."""
        weights = {name: value.detach().contiguous() for name, value in self.named_parameters()}
        with appearing(Path(folder, WEIGHTS)) as scratch:
            save_file(weights, scratch)
        write_file(Path(folder, CONFIG), json.dumps(to_data(self.shape), indent=2) + "\n")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Read what `save_pretrained` wrote."""
        files = [Path(folder, name) for name in (CONFIG, WEIGHTS)]
        require(all(map(is_file, files)), f"{folder} holds no {CONFIG} with {WEIGHTS}")
        shape = read_spec(files[0], cls.described)
        try:
            weights = load_file(files[1])
        except (SafetensorError, OSError, ValueError) as error:
            raise InputError(f"{folder} holds a damaged network: {error}") from error
        require(isinstance(shape, cls.shape_type), f"{folder} holds no {cls.described}")
        return cls(shape, weights)


def forward_and_penalty(
    shape: NetShape, params: Mapping[str, Tensor], inputs: Tensor
) -> tuple[Tensor, Tensor | float]:
    """The outputs, and what a member's loss in training has beside the error: mostly 0."""
    if isinstance(shape, PenalisedShape):
        return shape.penalised_forward(params, inputs)
    return shape.forward(params, inputs), 0.0


def stack(nets: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Parameters of many networks of one shape, stacked along the axis of members."""
    return {name: torch.stack([net[name] for net in nets]) for name in nets[0]}
