"""Neighbours with one head of full rank (theorem 1 of arXiv 2407.16153): any number of points.

With Q = ±τI and K = V = I a head scores point i by ±τ⟨x_i, y⟩. Hardmax returns the right point
exactly; softmax does as τ → ∞, because the weight of every other point is at most e^(−τ·gap).
"""

from math import sqrt

import torch

from headwise.core.errors import require
from headwise.nets import AttentionNet, AttentionNetShape, AttentionShape, EncoderNet, EncoderShape
from headwise.nets.attention import Kind
from headwise.tasks import Neighbours
from headwise.theory.checks import one_of, positive, shown


def full_rank_head(
    task: Neighbours, sharpness: float = 1000.0, kind: Kind = "hardmax"
) -> AttentionNet:
    """One head that answers the cross form; biases of positions become biases of its scores.

    `sharpness` is τ, which only softmax feels.
    """
    require(isinstance(task, Neighbours), f"task must be a Neighbours task, not {shown(task)}")
    one_of("kind", kind, ("softmax", "hardmax"))
    require(task.form == "cross", "one head answers the cross form; see full_rank_encoder")
    require(task.positions == "none", "this head reads points without positions' codes")
    sharpness = positive("sharpness", sharpness)
    shape = AttentionNetShape(
        token_dim=task.dim,
        outputs=task.dim,
        layer=AttentionShape(heads=1, qk_dim=task.dim, v_dim=task.dim),
        kind=kind,
        position_bias=len(task.biases),
        scaled=False,
    )
    identity = torch.eye(task.dim)
    params = {
        "query.weight": _sign(task) * sharpness * identity,
        "key.weight": identity,
        "value.weight": identity,
        "out.weight": identity,
    }
    if task.biases:
        params["position_bias"] = sharpness * torch.tensor([task.biases])
    return AttentionNet(shape, params)


def full_rank_encoder(
    task: Neighbours, sharpness: float = 1000.0, gain: float = 1000.0, kind: Kind = "softmax"
) -> EncoderNet:
    """The rank paper's encoder, by hand, for the farthest point in the self form.

    Attention returns f_i up to e^(−τ·gap); its output map multiplies it by `gain`, c. The residual
    connection adds x_i, the norm scales to length one: (x_i + c·f_i)/‖x_i + c·f_i‖, which is within
    1/c of f_i. The feed-forward network is zero and the second norm changes nothing.

    The nearest point cannot be had so: the nearest point to x_i is x_i itself.
    """
    require(isinstance(task, Neighbours), f"task must be a Neighbours task, not {shown(task)}")
    one_of("kind", kind, ("softmax", "hardmax"))
    require(
        task.form == "self" and task.target == "farthest",
        "the encoder by hand answers the self form with the farthest point",
    )
    require(not task.biases, "the encoder by hand knows no biases of positions")
    require(task.positions == "none", "this encoder reads points without positions' codes")
    sharpness, gain = positive("sharpness", sharpness), positive("gain", gain)
    dim = task.dim
    shape = EncoderShape(
        token_dim=dim,
        outputs=dim,
        width=dim,
        layers=(AttentionShape(heads=1, qk_dim=dim, v_dim=dim),),
        ffn=1,
        kind=kind,
    )
    params = {name: torch.zeros(size) for name, size in shape.parameter_shapes().items()}
    identity = torch.eye(dim)
    scores = _sign(task) * sharpness * sqrt(dim)  # the encoder divides scores by √dim
    params["layers.0.qkv.weight"] = torch.cat([scores * identity, identity, identity])
    params["layers.0.out.weight"] = gain * identity
    params["layers.0.norm1.weight"] = params["layers.0.norm2.weight"] = torch.ones(1)
    return EncoderNet(shape, params)


def _sign(task: Neighbours) -> float:
    return 1.0 if task.target == "nearest" else -1.0
