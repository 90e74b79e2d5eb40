"""One class-token network as a torch module: train it, save it, load it."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from headwise.errors import InputError, require
from headwise.nets.class_token import attend, attention_weights, forward
from headwise.nets.initial import initial_params
from headwise.nets.shape import ClassTokenShape
from headwise.spec import from_data, to_data

CONFIG, WEIGHTS = "config.json", "model.safetensors"


class ClassTokenNet(nn.Module):
    """A network of a given shape, with fresh weights of `seed` or the weights given."""

    def __init__(
        self, shape: ClassTokenShape, params: Mapping[str, Tensor] | None = None, seed: int = 0
    ) -> None:
        super().__init__()
        self.shape = shape
        params = initial_params(shape, seed) if params is None else params
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
        self, inputs: Float[Tensor, "batch length token_dim"]
    ) -> Float[Tensor, "batch outputs"]:
        return forward(self.shape, self._stacked(), inputs.unsqueeze(0)).squeeze(0)

    def attend(self, inputs: Float[Tensor, "batch length token_dim"]) -> Float[Tensor, "batch dim"]:
        """The class token after attention: all that the readout sees of the input."""
        return attend(self.shape, self._stacked(), inputs.unsqueeze(0)).squeeze(0)

    def attention_weights(
        self, inputs: Float[Tensor, "batch length token_dim"]
    ) -> Float[Tensor, "batch length heads"]:
        """How much each head of the last layer takes of each token."""
        return attention_weights(self.shape, self._stacked(), inputs.unsqueeze(0)).squeeze(0)

    def _stacked(self) -> dict[str, Tensor]:
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
    def from_pretrained(cls, folder: str | Path) -> "ClassTokenNet":
        """Read what `save_pretrained` wrote."""
        try:
            shape = from_data(json.loads(Path(folder, CONFIG).read_text()))
            weights = load_file(Path(folder, WEIGHTS))
        except FileNotFoundError as error:
            raise InputError(f"{folder} holds no {CONFIG} with {WEIGHTS}") from error
        except (json.JSONDecodeError, SafetensorError, UnicodeDecodeError) as error:
            raise InputError(f"{folder} holds a damaged network: {error}") from error
        require(isinstance(shape, ClassTokenShape), f"{folder} holds no class-token network")
        return cls(shape, weights)


def stack(nets: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Parameters of many networks of one shape, stacked along the axis of members."""
    return {name: torch.stack([net[name] for net in nets]) for name in nets[0]}
