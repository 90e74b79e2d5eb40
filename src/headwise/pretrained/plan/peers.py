"""How published methods cut a layer, from the same measurement, so that anyone can compare.

- `svd-llm` (Wang et al.): each of the four matrices W becomes the product of two thin ones that is
  best for its inputs x, at one ratio. With X = E[x xᵀ] = L Lᵀ (its Cholesky factor) that is the
  truncated SVD of W L. If W L = U Σ Vᵀ then U_r Σ_r V_rᵀ L⁻¹ = U_r U_rᵀ W, and U are the
  eigenvectors of W X Wᵀ: so L is neither computed nor inverted, and no singular X can stop it.
- `modegpt` (Lin et al.), its steps for attention, one size for all heads: coordinates of queries
  and keys (with RoPE, pairs) are selected by √(C_q C_k), the norms of the columns of the moments'
  roots; values and outputs get the SVD of their product under the input's moment.
"""

from dataclasses import replace

import torch
from torch import Tensor

from headwise.core.errors import require
from headwise.pretrained.adapters import AttentionSite, LinearPart
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.plan.allocate import Budget
from headwise.pretrained.plan.reductions import (
    Factor,
    LayerReductions,
    Narrowing,
    PairOrder,
    narrowing,
)
from headwise.pretrained.plan.shapes import LayerShape, full_shape


def require_one_sequence(sites: list[AttentionSite], method: str) -> None:
    """Both methods need the moment of each matrix's input; cross-attention has two inputs."""
    require(
        not any(site.cross for site in sites),
        f"{method} is for models without cross-attention; here fisher, taylor, prune-heads, "
        "uniform-svd and random can be used",
    )


def svd_llm_shapes(measurement: Measurement, budget: Budget) -> tuple[LayerShape, ...]:
    """All matrices at the ratio: rank = ratio · rows · columns / (rows + columns)."""
    require_one_sequence(measurement.sites, "svd-llm")
    require(
        budget.counts == "parameters",
        "svd-llm makes matrices thin and leaves the cache as it is; use keep",
    )
    if budget.fraction == 1:
        return tuple(full_shape(site) for site in measurement.sites)
    shapes = []
    for site in measurement.sites:
        rows, keys = site.heads * site.head_dim, site.kv_heads * site.head_dim

        def rank(outputs: int, hidden: int = site.hidden) -> int:
            return max(1, int(budget.fraction * outputs * hidden / (outputs + hidden)))

        shapes.append(
            LayerShape(
                groups=full_shape(site).groups,
                query_rank=rank(rows),
                key_rank=rank(keys),
                value_rank=rank(keys),
                output_rank=rank(rows),
            )
        )
    return tuple(shapes)


def svd_llm_reductions(layer: LayerReductions) -> LayerReductions:
    """Each matrix's factors; no mean is kept."""
    moments, weights = layer.moments, layer.weights
    assert moments.all_context is not None
    return replace(
        layer,
        moments=replace(moments, input_mean=torch.zeros_like(moments.input_mean)),
        query_factor=_whitened(weights.query, moments.input),
        key_factor=_whitened(weights.key, moments.input),
        value_factor=_whitened(weights.value, moments.input),
        output_factor=_whitened(weights.output, moments.all_context),
    )


def _whitened(affine: LinearPart, moment: Tensor) -> Factor:
    weight = affine.weight.double()
    values, vectors = torch.linalg.eigh(weight @ moment @ weight.T)
    basis = vectors.flip(-1)
    return Factor(basis.T, basis, torch.zeros(len(values) + 1, dtype=torch.float64))


def modegpt_reductions(site: AttentionSite, layer: LayerReductions) -> LayerReductions:
    """Selected coordinates of queries and keys; values and outputs by the SVD of their product."""
    moments, weights, dim = layer.moments, layer.weights, site.head_dim
    group = (-1, site.group_size)

    def by_head(affine: LinearPart) -> Tensor:
        return torch.unflatten(affine.weight.double(), 0, (-1, dim))

    key, value = by_head(weights.key), by_head(weights.value)
    outputs = torch.unflatten(weights.output.weight.double().T, 0, (-1, dim))
    key_size = (key @ moments.input * key).sum(-1)
    query_size = torch.unflatten(moments.query.diagonal(dim1=-2, dim2=-1), 0, group).sum(1)
    score = (key_size * query_size).sqrt()  # a root's columns have the moment's diagonal as norms²
    value_moment = value @ moments.input @ value.mT
    layer = replace(
        layer,
        moments=replace(moments, context=value_moment.repeat_interleave(site.group_size, dim=0)),
        values=narrowing(torch.unflatten(outputs @ outputs.mT, 0, group).sum(1), value_moment),
    )
    if not site.rotary:
        order = score.argsort(-1, descending=True)
        chosen = torch.eye(dim, dtype=torch.float64)[order]
        damage = torch.zeros(site.kv_heads, dim + 1, dtype=torch.float64)
        return replace(layer, queries=Narrowing(chosen, chosen.mT, damage))
    pairs = torch.unflatten(score.square(), -1, (2, -1)).sum(1)
    return replace(layer, pairs=[plain_pairs(each, site.group_size) for each in pairs])


def plain_pairs(score: Tensor, queries: int) -> PairOrder:
    """The pairs in the order of their scores, each as it is."""
    count = len(score)
    unit = torch.zeros(2 * queries, count, dtype=torch.float64)
    unit[0::2] = 1.0
    nothing = torch.zeros(count + 1, dtype=torch.float64)
    return PairOrder(score.argsort(descending=True), unit.expand(count + 1, -1, -1), nothing)
