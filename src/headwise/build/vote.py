"""The nearer of two points by majority vote: two layers whose heads all have rank 1.

A transformer with a residual stream, hard attention, no norm and no feed-forward network. The
stream of a token has four parts,

    value: x_i, or y for the query     code: the position's code, zero for the query
    votes: one number, 0 at first      answer: dim numbers, 0 at first

Layer 1: head h has one random direction u as query and key, both on the value, so the query
attends to the point with the larger (u·x_i)(u·y). It reads ⟨code, c_1 − c_2⟩, which is +1 at
point 1 and −1 at point 2, and adds a `heads`-th of that to votes. Layer 2: one head of rank 1 takes
votes as its query and ⟨code, c_1 − c_2⟩ as its key, so the winner has the larger score; it adds the
winner's value to answer.

A tie of an even number of votes is left to the last digit of the sums of ±1/heads, which is as
good as random. `headwise.theory.rank.vote_error` says what error to expect.
"""

from typing import NamedTuple

import numpy as np
import torch

from headwise.build.budget import check_numbers
from headwise.nets import AttentionShape, EncoderNet, EncoderShape
from headwise.tasks import Neighbours
from headwise.theory.checks import whole


class Parts(NamedTuple):
    """Named coordinates of the stream."""

    value: slice
    code: slice
    votes: int
    answer: slice
    width: int

    @classmethod
    def of(cls, dim: int, code: int) -> "Parts":
        """The parts for points of dimension `dim` and codes of `code` numbers."""
        votes = dim + code
        return cls(
            slice(0, dim),
            slice(dim, votes),
            votes,
            slice(votes + 1, votes + 1 + dim),
            votes + 1 + dim,
        )


def vote_task(dim: int) -> Neighbours:
    """The task that the vote answers: two orthogonal points with their codes, and a query."""
    return Neighbours(
        dim=whole("dim", dim, least=2),
        points=2,
        sampler="orthogonal",
        positions="concatenated",
        position_dim=2,
    )


def majority_vote(dim: int, heads: int, seed: int = 0) -> EncoderNet:
    """The two-layer transformer; its tokens are those of `vote_task(dim)`."""
    dim, heads, seed = whole("dim", dim), whole("heads", heads), whole("seed", seed, least=0)
    check_numbers(4 * heads * (2 * dim + 3), "the vote's heads have {} numbers")
    task = vote_task(dim)
    at = Parts.of(dim, task.position_dim)
    first, second = task.codes()
    which_point = first - second
    directions = np.random.default_rng([dim, heads, seed, 0x707E]).standard_normal((heads, dim))
    shape = EncoderShape(
        token_dim=task.token_dim,
        outputs=dim,
        width=at.width,
        layers=(
            AttentionShape(heads=heads, qk_dim=1, v_dim=1),
            AttentionShape(heads=1, qk_dim=1, v_dim=dim),
        ),
        ffn=0,
        norm="none",
        kind="hardmax",
        keys="others",
        maps=True,
    )
    params = {name: torch.zeros(size) for name, size in shape.parameter_shapes().items()}
    params["into.weight"][: task.token_dim] = torch.eye(task.token_dim)

    query, key, value = params["layers.0.qkv.weight"].split((heads, heads, heads))
    query[:, at.value] = key[:, at.value] = torch.from_numpy(directions).float()
    value[:, at.code] = which_point
    params["layers.0.out.weight"][at.votes] = 1 / heads

    query, key, value = params["layers.1.qkv.weight"].split((1, 1, dim))
    query[0, at.votes] = 1.0
    key[0, at.code] = which_point
    value[:, at.value] = torch.eye(dim)
    params["layers.1.out.weight"][at.answer] = torch.eye(dim)

    params["readout.weight"][:, at.answer] = torch.eye(dim)
    return EncoderNet(shape, params)
