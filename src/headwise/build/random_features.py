"""One layer of hard heads of rank 1 along random directions, combined in the best way.

Head h returns the x_i with the larger (k_h·x_i)(q_h·y), and the layer Σ_h a_h × that point. The
best a and the error it has are known in closed form: `headwise.theory.rank.random_features`.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import numpy as np
import torch

from headwise.build.budget import check_numbers
from headwise.core.shown import Printed
from headwise.nets import AttentionNet, AttentionNetShape, AttentionShape
from headwise.theory.checks import one_of, whole
from headwise.theory.rank import fit_random_features, fit_with_short_keys
from headwise.theory.rank.random_features import MOST_HEADS

Draw = Literal["aligned", "independent", "uniform-angle", "published"]


@dataclass(frozen=True, kw_only=True)
class RandomFeaturesLayer(Printed):
    """The layer, and the mean-square error that the closed form gives it.

    Of the draw "published", `error` is what the authors' formula gives, which is none of the
    layer's; `layer_error` is.
    """

    net: AttentionNet = field(repr=False)
    dim: int
    heads: int
    seed: int
    draw: Draw
    error: float
    layer_error: float

    def __str__(self) -> str:
        said = (
            f"{self.heads:,} hard heads of rank 1 in dimension {self.dim}, draw {self.draw}, seed "
            f"{self.seed}: mean-square error {self.error:.4f}"
        )
        if self.draw != "published":
            return f"{said}, by the closed form for the best weights."
        return (
            f"{said} by the authors' formula, which takes keys for shorter than the heads see them;"
            f" the layer with the weights that come of it has {self.layer_error:.4f}."
        )

    def to_data(self) -> dict[str, Any]:
        """The layer's numbers as JSON data."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "net"}


def random_features_layer(
    dim: int, heads: int, seed: int = 0, draw: Draw = "aligned"
) -> RandomFeaturesLayer:
    """The best layer on random directions, for two orthogonal points.

    Aligned: k_h = ±q_h, the sign in turn, which is the better draw from dimension 16 on.
    Independent: q_h and k_h are drawn apart. Uniform angle: the cosine of q_h and k_h is uniform,
    as in the authors' script. Published: the same, with the script's slip, see
    `headwise.theory.rank.fit_with_short_keys`; the layer has the weights that come of it.
    """
    dim, heads = whole("dim", dim, least=2), whole("heads", heads, most=MOST_HEADS)
    seed = whole("seed", seed, least=0)
    one_of("draw", draw, get_args(Draw))
    check_numbers(heads * (2 * dim + heads), "the heads and their products are {} numbers")
    rng = np.random.default_rng([dim, heads, seed, 0x5EED])
    queries, keys = _directions(rng, heads, dim, draw)
    fitted = (fit_with_short_keys if draw == "published" else fit_random_features)(queries, keys)
    shape = AttentionNetShape(
        token_dim=dim,
        outputs=dim,
        layer=AttentionShape(heads=heads, qk_dim=1, v_dim=dim),
        kind="hardmax",
        values="scalar",
    )
    params = {"query.weight": queries, "key.weight": keys, "mix": fitted.weights}
    tensors = {name: torch.from_numpy(value).float() for name, value in params.items()}
    return RandomFeaturesLayer(
        net=AttentionNet(shape, tensors),
        dim=dim,
        heads=heads,
        seed=seed,
        draw=draw,
        error=fitted.error,
        layer_error=fitted.layer_error,
    )


def _directions(
    rng: np.random.Generator, heads: int, dim: int, draw: Draw
) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys of length one; the keys of the draw "published" are shorter."""
    queries = _unit(rng.standard_normal((heads, dim)))
    if draw == "aligned":
        return queries, queries * np.where(np.arange(heads) % 2, -1, 1)[:, None]
    others = _unit(rng.standard_normal((heads, dim)))
    if draw == "independent":
        return queries, others
    cosines = rng.uniform(-1, 1, (heads, 1))
    across = others - np.sum(others * queries, axis=1, keepdims=True) * queries
    across = across if draw == "published" else _unit(across)
    return queries, cosines * queries + np.sqrt(1 - cosines**2) * across


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
