"""Attention heads of any variant that pool a sequence into a class token."""

import numpy as np
from jaxtyping import Float

from headwise.core.spec import spec
from headwise.nets.layers import Hidden, ParameterShapes, Params, linear, linear_shapes
from headwise.nets.sequence._pooling import Pooled
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Variant
from headwise.nets.variants.named import find_variant, settled
from headwise.nets.variants.pooling import pool_by_heads

_LAYER = "layers.0"


@spec
class HeadPooling:
    """One layer of heads; the class token is the query, and a key too. Scores are over √qk_dim.

    `variant` is the text of a variant of attention, as "grouped:2". With "plain" this is the
    head-count paper's network, parameter by parameter (`ClassTokenShape`).
    """

    layer: AttentionShape
    variant: str = "plain"

    def __post_init__(self) -> None:
        object.__setattr__(self, "variant", settled(self.variant, (self.layer,)))

    @property
    def mechanism(self) -> Variant:
        """The variant."""
        return find_variant(self.variant)

    @property
    def model(self) -> str:
        """The variant's name."""
        return self.mechanism.label

    @property
    def attention_layers(self) -> tuple[AttentionShape, ...]:
        """The one layer."""
        return (self.layer,)

    def units(self, dim: int) -> int:
        """Active heads."""
        return self.mechanism.active(self.layer)

    def out_dim(self, dim: int) -> int:
        """The tokens' own dimension."""
        return dim

    def parameter_shapes(self, dim: int) -> ParameterShapes:
        """The class token and the four maps."""
        queries, keys, values = self.mechanism.maps(self.layer)
        rank, size = self.layer.qk_dim, self.layer.v_dim
        return {
            "class_token": (dim,),
            **linear_shapes(f"{_LAYER}.query", queries * rank, dim),
            **linear_shapes(f"{_LAYER}.key", keys * rank, dim),
            **linear_shapes(f"{_LAYER}.value", values * size, dim),
            **linear_shapes(f"{_LAYER}.out", dim, self.layer.heads * size),
        }

    def extra_shapes(self, dim: int) -> ParameterShapes:
        """The variant's own."""
        own = self.mechanism.extra_shapes(self.layer, dim)
        return {f"{_LAYER}.{name}": size for name, size in own.items()}

    def initial(
        self, name: str, size: tuple[int, ...], rng: np.random.Generator
    ) -> Float[np.ndarray, "..."]:
        """As the variant says."""
        return self.mechanism.initial(name, size, rng)

    def pool(self, params: Params, hidden: Hidden, embedding: str) -> Pooled:
        """The class token after the layer."""
        heads = pool_by_heads(self.mechanism, self.layer, params, hidden, embedding)
        return linear(heads, params, f"{_LAYER}.out")
