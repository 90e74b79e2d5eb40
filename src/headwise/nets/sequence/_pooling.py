"""What stands between embedded tokens and one vector: the counterpart of heads."""

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from torch import Tensor

from headwise.nets.layers import Hidden, ParameterShapes, Params
from headwise.nets.shape import AttentionShape

Pooled = Float[Tensor, "members batch out"]
"""One vector a sequence."""


@runtime_checkable
class Pooling(Protocol):
    """A way from tokens to one vector. Its parameters are functions of the tokens' dimension."""

    @property
    def model(self) -> str:
        """Its name in tables."""
        ...

    @property
    def attention_layers(self) -> tuple[AttentionShape, ...]:
        """Its attention layers; none of a model that has no heads."""
        ...

    def units(self, dim: int) -> int:
        """How many heads, channels or numbers of state it has: what is swept in a study."""
        ...

    def out_dim(self, dim: int) -> int:
        """Numbers in the vector."""
        ...

    def parameter_shapes(self, dim: int) -> ParameterShapes:
        """Name → shape of its parameters, without those of `extra_shapes`."""
        ...

    def extra_shapes(self, dim: int) -> ParameterShapes:
        """Name → shape of parameters that do not start as weights and biases do."""
        ...

    def initial(
        self, name: str, size: tuple[int, ...], rng: np.random.Generator
    ) -> Float[np.ndarray, "..."]:
        """How such a parameter starts."""
        ...

    def pool(self, params: Params, hidden: Hidden, embedding: str) -> Pooled:
        """The vector; a token is the map `embedding` of the hidden layer."""
        ...


class NoExtras:
    """A model without attention whose parameters are ordinary weights and biases."""

    @property
    def attention_layers(self) -> tuple[AttentionShape, ...]:
        """None."""
        return ()

    def out_dim(self, dim: int) -> int:
        """The tokens' own dimension."""
        return dim

    def parameter_shapes(self, dim: int) -> ParameterShapes:
        """None."""
        return {}

    def extra_shapes(self, dim: int) -> ParameterShapes:
        """None."""
        return {}

    def initial(
        self, name: str, size: tuple[int, ...], rng: np.random.Generator
    ) -> Float[np.ndarray, "..."]:
        """There is no such parameter."""
        raise KeyError(name)
