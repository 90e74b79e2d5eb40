"""Cut one attention layer of a trained decoder: narrower heads, or fewer.

A head is two products: queries and keys make W_Qᵀ W_K, values and output W_O W_V. Of a product
Pᵀ R of two maps with d rows each, whose inputs have second moments C and D, the best rank-r
replacement in the mean square of x ↦ (P x)ᵀ(R y) is a truncated SVD in d dimensions: with
P C Pᵀ = L Lᵀ and R D Rᵀ = M Mᵀ (Cholesky) and Lᵀ M = U S Vᵀ, the new maps are S^½ Uᵀ L⁻¹ P and
S^½ Vᵀ M⁻¹ R, cut to r rows. (Their product is Pᵀ R at full rank; L⁻¹ P x and M⁻¹ R y have identity
moments, and truncation is optimal there by Eckart–Young.) A constant in a row of scores does
nothing, so the keys' moments are taken about their mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.nets import AttentionShape, DecoderShape

Weights = Mapping[str, Tensor]
"""A decoder's parameters by name, without an axis for members."""


@dataclass(frozen=True)
class Heads:
    """One layer's four projections, head by head, in double precision."""

    query: Float[Tensor, "heads qk width"]
    key: Float[Tensor, "heads qk width"]
    value: Float[Tensor, "heads v width"]
    output: Float[Tensor, "heads v width"]  # transposed: it writes what `value` reads

    @staticmethod
    def of(weights: Weights, index: int, layer: AttentionShape) -> "Heads":
        """The projections of layer number `index`, which has the shape `layer`."""
        joint = weights[f"layers.{index}.qkv.weight"].double()
        queries = layer.heads * layer.qk_dim
        parts = joint.split([queries, queries, layer.heads * layer.v_dim])
        output = weights[f"layers.{index}.out.weight"].double().T
        return Heads(*(part.unflatten(0, (layer.heads, -1)) for part in (*parts, output)))

    @property
    def shape(self) -> AttentionShape:
        """How many heads there are, and of which dimensions."""
        heads, qk_dim, _ = self.query.shape
        return AttentionShape(heads=heads, qk_dim=qk_dim, v_dim=self.value.shape[1])

    def only(self, kept: Sequence[int]) -> "Heads":
        """These heads alone."""
        parts = (self.query, self.key, self.value, self.output)
        return Heads(*(part[list(kept)] for part in parts))

    def narrowed(self, inputs: Float[Tensor, "tokens width"], qk_dim: int, v_dim: int) -> "Heads":
        """Heads of these dimensions that do most nearly the same on these inputs."""
        seen = inputs.double()
        moment = seen.T @ seen / len(seen)
        about_mean = torch.cov(seen.T, correction=0)
        query, key = balanced(self.query, moment, self.key, about_mean, qk_dim)
        value, output = balanced(self.value, moment, self.output, None, v_dim)
        scale = sqrt(qk_dim / self.query.shape[1])  # scores stay divided by the old √qk_dim
        return Heads(query * scale, key, value, output)


def balanced(
    left: Float[Tensor, "heads d width"],
    left_moment: Float[Tensor, "width width"],
    right: Float[Tensor, "heads d width"],
    right_moment: Float[Tensor, "width width"] | None,
    rank: int,
) -> tuple[Float[Tensor, "heads r width"], Float[Tensor, "heads r width"]]:
    """Two maps of `rank` rows whose product is nearest to that of these; None: white inputs."""
    roots = [_root(left @ left_moment @ left.mT)]
    roots.append(
        _root(right @ right.mT if right_moment is None else right @ right_moment @ right.mT)
    )
    u, s, vt = torch.linalg.svd(roots[0].mT @ roots[1])
    size = s[:, :rank, None].sqrt()
    new_left = size * u.mT[:, :rank] @ torch.linalg.solve_triangular(roots[0], left, upper=False)
    new_right = size * vt[:, :rank] @ torch.linalg.solve_triangular(roots[1], right, upper=False)
    return new_left, new_right


def _root(gram: Float[Tensor, "heads d d"]) -> Float[Tensor, "heads d d"]:
    size = gram.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None].clamp_min(1e-30)
    return torch.linalg.cholesky(gram + 1e-9 * size * torch.eye(gram.shape[-1], dtype=gram.dtype))


def with_layer(
    shape: DecoderShape, weights: Weights, index: int, heads: Heads
) -> tuple[DecoderShape, dict[str, Tensor]]:
    """The decoder with this layer replaced."""
    check_can_be_cut(shape)
    layers = (*shape.layers[:index], heads.shape, *shape.layers[index + 1 :])
    name, changed = f"layers.{index}", dict(weights)
    joint = torch.cat([part.flatten(0, 1) for part in (heads.query, heads.key, heads.value)])
    changed[f"{name}.qkv.weight"] = joint.float()
    changed[f"{name}.out.weight"] = heads.output.flatten(0, 1).T.float().contiguous()
    return replace(shape, layers=layers), changed


def check_can_be_cut(shape: DecoderShape) -> None:
    """Between a head's two projections there must be nothing but their product."""
    require(
        shape.positions != "rope" and not shape.qk_norm,
        "heads are narrowed as products of two projections; RoPE and QK-norm stand between them: "
        "use learned positions or none, without QK-norm",
    )
    require(
        shape.attention == "plain",
        f"heads of plain attention are cut; these are {shape.attention}",
    )
