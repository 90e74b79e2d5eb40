"""What every network here is: a shape and named weights that can be saved and loaded."""

import json
import os
import tempfile
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from headwise.core.errors import InputError, require
from headwise.core.spec import from_data, to_data

CONFIG, WEIGHTS = "config.json", "model.safetensors"


class Shape(Protocol):
    """What a network's specification must say."""

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]: ...

    def params(self) -> dict[str, int]: ...


ShapeT = TypeVar("ShapeT", bound=Shape)


class Net(nn.Module, Generic[ShapeT]):
    """A network of a given shape, with fresh weights of `seed` or the weights given."""

    shape_type: ClassVar[type[Any]]
    described: ClassVar[str]

    def __init__(
        self, shape: ShapeT, params: Mapping[str, Tensor] | None = None, seed: int = 0
    ) -> None:
        super().__init__()
        self.shape = shape
        params = self.initial(shape, seed) if params is None else params
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

    @staticmethod
    @abstractmethod
    def initial(shape: Any, seed: int) -> dict[str, Tensor]:
        """Fresh weights."""

    def stacked_parameters(self) -> dict[str, Tensor]:
        """The weights with the axis of members that the networks' functions expect."""
        return {name: value.unsqueeze(0) for name, value in self.named_parameters()}

    def save_pretrained(self, folder: str | Path) -> None:
        """Write shape and weights; each file appears whole or not at all."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().contiguous() for name, value in self.named_parameters()}
        with tempfile.TemporaryDirectory(dir=folder, prefix=".saving-") as scratch:
            save_file(weights, Path(scratch, WEIGHTS))
            Path(scratch, CONFIG).write_text(json.dumps(to_data(self.shape), indent=2) + "\n")
            for name in (WEIGHTS, CONFIG):
                os.replace(Path(scratch, name), folder / name)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Read what `save_pretrained` wrote."""
        try:
            shape = from_data(json.loads(Path(folder, CONFIG).read_text()))
            weights = load_file(Path(folder, WEIGHTS))
        except FileNotFoundError as error:
            raise InputError(f"{folder} holds no {CONFIG} with {WEIGHTS}") from error
        except (json.JSONDecodeError, SafetensorError, UnicodeDecodeError) as error:
            raise InputError(f"{folder} holds a damaged network: {error}") from error
        require(isinstance(shape, cls.shape_type), f"{folder} holds no {cls.described}")
        return cls(shape, weights)
