"""Training token networks: members do not disturb each other, and rank is what it should be."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from headwise.core.errors import InputError
from headwise.nets import AttentionNetShape, AttentionShape, EncoderNet, EncoderShape
from headwise.tasks import InContextRegression, Neighbours
from headwise.theory.rank import error_lower_bound
from headwise.training import Outcome, Streaming, learning_rates, train
from headwise.training.ensemble import stackable
from headwise.training.stream.data import Stream

SHORT = Streaming(steps=12, rate=1e-2, batch=16, validation=48, evaluations=3)
FARTHEST = Neighbours(dim=8, points=5, target="farthest", form="self")
ODD = Neighbours(dim=5, points=3, target="farthest", form="self")
PAIR = Neighbours(dim=6, points=2, sampler="orthogonal")
CONTEXT = InContextRegression(dim=3, shots=2)
PAPER = EncoderShape.paper(token_dim=8, rank=4, layers=2, modules=2, ffn=12)
CASES = {
    "paper": (FARTHEST, PAPER),
    "rank 1": (FARTHEST, EncoderShape.paper(token_dim=8, rank=1, modules=2, ffn=10)),
    "aligned layer norm": (
        FARTHEST,
        EncoderShape.plain(token_dim=8, outputs=8, width=8, heads=2, layers=1, ffn=12),
    ),
    "odd sizes": (ODD, EncoderShape.paper(token_dim=5, rank=1, ffn=7)),
    "causal": (
        CONTEXT,
        EncoderShape.plain(
            token_dim=3, outputs=1, width=6, heads=2, layers=1, ffn=7, keys="earlier", positions=5
        ),
    ),
    "aligned, one output": (
        CONTEXT,
        EncoderShape.plain(
            token_dim=3, outputs=1, width=16, heads=2, layers=1, ffn=16, keys="earlier", positions=5
        ),
    ),
    "layer": (
        PAIR,
        AttentionNetShape(
            token_dim=6, outputs=6, layer=AttentionShape(heads=3, qk_dim=1, v_dim=6), biases=True
        ),
    ),
    "scalar layer": (
        PAIR,
        AttentionNetShape(
            token_dim=6,
            outputs=6,
            layer=AttentionShape(heads=3, qk_dim=1, v_dim=6),
            values="scalar",
        ),
    ),
}


def same(first: Outcome, second: Outcome) -> bool:
    return first.curve == second.curve and all(
        torch.equal(first.params[name], second.params[name]) for name in first.params
    )


@pytest.mark.parametrize(("task", "net"), CASES.values(), ids=CASES)
def test_a_member_does_not_depend_on_its_neighbours(task, net) -> None:  # type: ignore[no-untyped-def]
    together = train(task, net, SHORT, seeds=range(8))
    for seeds in ([0], [7], [6, 3], [5, 9, 4]):
        for outcome in train(task, net, SHORT, seeds):
            if outcome.seed < 8:
                assert same(outcome, together[outcome.seed])
    assert not same(together[0], together[1])


def test_aligned_members_are_stacked_and_others_are_not() -> None:
    names = ("paper", "rank 1", "aligned layer norm", "aligned, one output")
    assert [name for name, (_, net) in CASES.items() if stackable(net, SHORT)] == list(names)
    assert not stackable(PAPER, replace(SHORT, batch=20))


def test_the_trajectory_is_that_of_a_plain_loop() -> None:
    training = replace(SHORT, weight_decay=0.1)
    outcomes = train(FARTHEST, PAPER, training, seeds=[3, 4])
    net = EncoderNet(PAPER, seed=4)
    adam = torch.optim.AdamW(net.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    stream, losses = Stream(FARTHEST, 0, 4), []
    for rate in learning_rates(training):
        inputs, targets = stream.take(16)
        adam.param_groups[0]["lr"] = rate
        loss = FARTHEST.dim * nn.functional.mse_loss(
            net(inputs), targets
        )  # summed over coordinates
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    expected = [np.mean(losses[first : first + 4]) for first in (0, 4, 8)]
    np.testing.assert_allclose([loss for _, _, loss in outcomes[1].curve], expected, rtol=1e-4)
    for name, value in net.named_parameters():
        if name.endswith("qkv.bias"):
            continue  # a key's bias has gradient zero; AdamW blows up its rounding errors
        torch.testing.assert_close(outcomes[1].params[name], value.detach(), atol=1e-4, rtol=1e-3)


def test_full_rank_learns_what_half_rank_cannot() -> None:
    task = Neighbours(dim=4, points=4, target="farthest", form="self")
    training = Streaming(steps=500, rate=0.03, batch=64, validation=1024, evaluations=2)
    errors = {}
    for rank in (2, 4):
        net = EncoderShape.paper(token_dim=4, rank=rank, ffn=8)
        errors[rank] = train(task, net, training, seeds=[0, 1])
    best = {rank: min(o.error for o in outcomes if o.error) for rank, outcomes in errors.items()}
    assert best[4] < 0.1
    assert best[2] > 3 * best[4]


def test_trained_layers_respect_the_lower_bound() -> None:
    training = Streaming(steps=500, rate=0.03, batch=128, validation=8192, evaluations=2)
    _, net = CASES["scalar layer"]
    for outcome in train(PAIR, net, training, seeds=[0, 1]):
        bound = error_lower_bound(6, 1, 3, "scalar", highest_degree=9999).value
        assert bound is not None
        assert outcome.error is not None
        assert bound - 0.01 < outcome.error < 0.5


def test_divergence_is_recorded() -> None:
    outcomes = train(PAIR, CASES["layer"][1], replace(SHORT, rate=1e30), seeds=[0, 1])
    assert all(outcome.diverged for outcome in outcomes)


@pytest.mark.parametrize(
    ("task", "net", "sentence"),
    [
        (ODD, PAPER, "the network takes 8"),
        (FARTHEST, replace(PAPER, outputs=4), "the network's outputs 4"),
        (FARTHEST, replace(PAPER, kind="hardmax"), "hardmax has no gradient"),
    ],
)
def test_what_does_not_fit_is_refused(task, net, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=sentence):
        train(task, net, SHORT, seeds=[0])
    with pytest.raises(InputError, match="seeds are distinct"):
        train(FARTHEST, PAPER, SHORT, seeds=[1, 1])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"steps": 0}, "steps is 0"), ({"rate": 0.0}, "rate"), ({"betas": (0.9, 1.0)}, "betas")],
)
def test_impossible_training_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        replace(SHORT, **change)  # type: ignore[arg-type]
