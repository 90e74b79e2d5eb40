"""How a head is made smaller, and what each size costs in loss.

Every reduction minimises the second-order damage ½ E[(gᵀ δ)²] of the change δ it makes, with g the
loss gradient there, under the approximation that g and the layer's input are independent
(Kronecker-factored Fisher). That puts the damage of all heads, layers and kinds into one currency,
nats (or 1 − cosine), which is what sharing out a budget needs.

With C^{1/2}, G^{1/2} roots of the moments of value and gradient, the best map T of rank r in place
of the identity minimises ‖G^{1/2}(I − T)C^{1/2}‖², so it comes from the SVD G^{1/2}C^{1/2} = UΣVᵀ:
T = L R with R = Σ^{-1/2}UᵀG^{1/2} and L = C^{1/2}VΣ^{-1/2}, first r columns each, at a damage of
½ Σ_{i>r} σ_i². No inverse of a moment is needed.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.pretrained.adapters import AttentionSite, AttentionWeights
from headwise.pretrained.measure.moments import LayerMoments

_DEAD = 1e-15  # a largest singular value below it belongs to a head that does nothing


class Narrowing(NamedTuple):
    """Maps into and back from the best subspace of every size: the first r rows, r columns."""

    into: Float[Tensor, "heads dim dim"]
    back: Float[Tensor, "heads dim dim"]
    damage: Float[Tensor, "heads sizes"]  # at sizes 0 … dim


class PairOrder(NamedTuple):
    """RoPE pairs of one key group in the order in which to keep them, and gains at each count."""

    order: Int[Tensor, " pairs"]
    gains: Float[Tensor, "counts queries_2 pairs"]  # (count, 2·query head + re/im, pair)
    damage: Float[Tensor, " counts"]  # at 0 … pairs kept


class Factor(NamedTuple):
    """weight ≈ back[:, :r] @ into[:r] @ weight on centred inputs; damage at rank r = 0 … full."""

    into: Float[Tensor, "rank rows"]
    back: Float[Tensor, "rows rank"]
    damage: Float[Tensor, " sizes"]


@dataclass
class LayerReductions:
    """All that is needed to cut one layer to any shape."""

    weights: AttentionWeights
    moments: LayerMoments
    values: Narrowing
    queries: Narrowing | None  # None with RoPE, where the next three stand in
    pairs: list[PairOrder] | None
    query_factor: Factor | None
    key_factor: Factor | None
    value_factor: Factor | None = None  # these two of svd-llm only
    output_factor: Factor | None = None


def reduce_layer(
    site: AttentionSite, weights: AttentionWeights, moments: LayerMoments
) -> LayerReductions:
    """Error curves and maps of one layer, from its moments."""
    values = value_narrowing(site, moments)
    if not site.rotary:
        queries = narrowing(moments.query_gradient, moments.query)  # scores become kᵀ T q
        return LayerReductions(weights, moments, values, queries, None, None, None)
    assert moments.gain is not None
    assert moments.input is not None
    assert moments.input_mean is not None
    assert moments.all_query_gradient is not None
    assert moments.all_key_gradient is not None
    assert moments.felt_by_query is not None
    assert moments.felt_by_key is not None
    covariance = moments.input - torch.outer(moments.input_mean, moments.input_mean)
    return LayerReductions(
        weights,
        moments,
        values,
        None,
        [order_pairs(gain, site.group_size) for gain in moments.gain],
        factorise(
            weights.query.weight,
            square_root(weighed(covariance, moments.felt_by_query)),
            moments.all_query_gradient,
        ),
        factorise(
            weights.key.weight,
            square_root(weighed(covariance, moments.felt_by_key)),
            moments.all_key_gradient,
        ),
    )


def weighed(plain: Tensor, felt: Tensor) -> Tensor:
    """The mean of the two covariances.

    Where value and gradient are not independent, the one weighted by squared gradients is nearer
    to the truth, and noisier: it rests on few tokens.
    """
    return (plain + felt) / 2


def square_root(moment: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
    """The symmetric root of a positive semidefinite matrix."""
    values, vectors = torch.linalg.eigh(moment)
    root: Tensor = (vectors * values.clamp(min=0).sqrt().unsqueeze(-2)) @ vectors.mT
    return root


def narrowing(gradient: Tensor, value: Tensor) -> Narrowing:
    """The best T = back·into of every rank, acting on a vector with these moments."""
    root = square_root(value)
    sensitivity = square_root(gradient)
    u, s, vh = torch.linalg.svd(sensitivity @ root)
    scale = inverse_root(s)
    into = scale.unsqueeze(-1) * (u.mT @ sensitivity)
    back = (root @ vh.mT) * scale.unsqueeze(-2)
    return Narrowing(*balanced(into, back), tail_damage(s))


def inverse_root(singular: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """σ^{-1/2}, bounded; zero where all of a head's σ are, so that a dead head's maps are zero too.

    (σ²/2 is a damage: what is called dead here could not be seen in any output.)
    """
    largest = singular.amax(-1, keepdim=True)
    bounded = singular.clamp(min=largest * 1e-9 + 1e-300).rsqrt()
    return torch.where(largest > _DEAD, bounded, 0.0)


def balanced(
    into: Float[Tensor, "*batch rank n"], back: Float[Tensor, "*batch m rank"]
) -> tuple[Tensor, Tensor]:
    """The same product, with each row of `into` about as long as its column of `back`.

    How gradients compare with values depends on the unit of the damage and on how little a layer
    does, and half precision ends at 65504. The factors are powers of two, so nothing is rounded.
    """
    rows, columns = into.norm(dim=-1), back.norm(dim=-2)
    alive = (rows > 0) & (columns > 0)
    ratio = torch.where(alive, columns / rows, 1.0)
    factor = torch.exp2((ratio.log2() / 2).round())
    return into * factor.unsqueeze(-1), back / factor.unsqueeze(-2)


def tail_damage(singular: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch sizes"]:
    """½ Σ_{i>r} σ_i² for r = 0 … n."""
    tails = singular.square().flip(-1).cumsum(-1).flip(-1) / 2
    return torch.cat([tails, torch.zeros_like(tails[..., :1])], dim=-1)


def value_narrowing(site: AttentionSite, moments: LayerMoments) -> Narrowing:
    """Per key group: heads of a group share their values, so their moments add up."""
    mean = moments.context_mean
    centred = moments.context - mean.unsqueeze(-1) * mean.unsqueeze(-2)
    group = (-1, site.group_size)
    return narrowing(
        torch.unflatten(moments.context_gradient, 0, group).sum(1),
        torch.unflatten(weighed(centred, moments.felt_context), 0, group).mean(1),
    )


def order_pairs(gain: Float[Tensor, "n n"], queries: int) -> PairOrder:
    """Drop the least missed pair, readjust the others' gains, repeat (optimal brain surgeon).

    With δ the change of all gains from 1, the damage is ½ δᵀFδ. A dropped pair has δ = −1 in its
    real and 0 in its imaginary part; the others are free. Let P = F⁻¹ and let C be P conditioned
    on what was dropped before. Forcing block d of δ from δ_d to t_d moves all by
    C_{:d} C_dd⁻¹ (t_d − δ_d), adds ½ (t_d − δ_d)ᵀ C_dd⁻¹ (t_d − δ_d) to the damage, and conditions
    C further, to C − C_{:d} C_dd⁻¹ C_{d:}: so all candidates of a round are one small solve.
    """
    count = gain.shape[0] // (2 * queries)
    ridge = gain.diagonal().mean() * 1e-3 + 1e-300
    covariance = torch.linalg.inv(gain + ridge * torch.eye(len(gain)).to(gain))
    index = torch.arange(len(gain), device=gain.device).view(2 * queries, count)
    by_pair = index.T  # pair → its real and imaginary gains of every query head
    target = torch.zeros(2 * queries, dtype=gain.dtype, device=gain.device)
    target[0::2] = -1.0  # dropping takes the real gain from 1 to 0, the imaginary stays 0
    one = torch.zeros_like(index, dtype=gain.dtype)
    one[0::2] = 1.0
    delta = torch.zeros(len(gain), dtype=gain.dtype, device=gain.device)
    left, removed = list(range(count)), list[int]()
    gains, damage = [one] * (count + 1), [0.0] * (count + 1)
    while left:
        blocks = by_pair[left]
        inner = covariance[blocks[:, :, None], blocks[:, None, :]]
        force = target - delta[blocks]
        pull = torch.linalg.solve(inner, force)
        cheapest = int((force * pull).sum(-1).argmin())
        pair, rows = left.pop(cheapest), blocks[cheapest]
        columns = covariance[:, rows]
        delta = delta + columns @ pull[cheapest]
        delta[rows] = target  # exactly
        covariance = covariance - columns @ torch.linalg.solve(inner[cheapest], columns.T)
        removed.append(pair)
        gains[len(left)] = one + delta[index]
        damage[len(left)] = float(delta @ gain @ delta) / 2
    return PairOrder(
        torch.tensor(removed[::-1], device=gain.device),
        torch.stack(gains),
        torch.tensor(damage, dtype=gain.dtype).cummin(0).values,
    )


def pair_maps(
    order: PairOrder, member: int, dim: int, head_dim: int
) -> tuple[Float[Tensor, "head_dim head_dim"], Int[Tensor, " dim"]]:
    """The kept pairs' gains as a map of one head's query, and which of its rows are kept."""
    pairs = order.order[: dim // 2].sort().values
    real, imaginary = order.gains[dim // 2, 2 * member : 2 * member + 2, pairs]
    other = pairs + head_dim // 2
    turn = torch.zeros(head_dim, head_dim, dtype=torch.float64)
    turn[pairs, pairs], turn[other, other] = real, real
    turn[pairs, other], turn[other, pairs] = -imaginary, imaginary
    return turn, torch.cat([pairs, other])


def factorise(weight: Tensor, root: Tensor, gradient: Tensor) -> Factor:
    """The best low-rank weight for every rank: SVD of G^{1/2} W X^{1/2}; again no inverse."""
    weight = weight.double()
    sensitivity = square_root(gradient)
    u, s, vh = torch.linalg.svd(sensitivity @ weight @ root, full_matrices=False)
    scale = inverse_root(s)
    into = scale.unsqueeze(-1) * (u.mT @ sensitivity)
    back = (weight @ root @ vh.mT) * scale
    return Factor(*balanced(into, back), tail_damage(s))


def score_maps(
    site: AttentionSite, reductions: LayerReductions, dims: list[int]
) -> Float[Tensor, "heads dim dim"]:
    """Maps of the queries after which scores are those of heads cut to `dims`, one a key group."""
    maps = []
    for head in range(site.heads):
        group, member = divmod(head, site.group_size)
        dim = dims[group]
        if dim == site.head_dim:
            maps.append(torch.eye(dim, dtype=torch.float64))
        elif reductions.pairs is None:
            assert reductions.queries is not None
            back, into = reductions.queries.back[group], reductions.queries.into[group]
            maps.append(back[:, :dim] @ into[:dim])
        else:
            turn, _ = pair_maps(reductions.pairs[group], member, dim, site.head_dim)
            maps.append(turn)
    return torch.stack(maps)
