"""The rank constructions: complete networks that reach what their formulas say."""

from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.build.neighbours import full_rank_encoder, full_rank_head
from headwise.build.random_features import random_features_layer
from headwise.build.vote import majority_vote, vote_task
from headwise.core.errors import InputError
from headwise.nets import AttentionNet, AttentionNetShape, AttentionShape, EncoderNet
from headwise.tasks import Neighbours, measure
from headwise.theory.rank import error_lower_bound, vote_error

CROSS = [
    Neighbours(dim=16, points=2, sampler="orthogonal"),
    Neighbours(dim=16, points=64),
    Neighbours(dim=5, points=8, target="farthest"),
    Neighbours(dim=6, points=3, biases=(0.3, 0.0, -0.3)),
    Neighbours(dim=6, points=4, sampler="antipodal", queries="gaussian"),
]
FARTHEST = Neighbours(dim=16, points=16, target="farthest", form="self")


@pytest.mark.parametrize("task", CROSS, ids=str)
def test_one_hard_head_of_full_rank_is_exact(task: Neighbours) -> None:
    assert measure(full_rank_head(task), task, 4000).error < 1e-9


@pytest.mark.parametrize("task", CROSS, ids=str)
def test_a_soft_head_is_exact_in_the_limit(task: Neighbours) -> None:
    errors = [
        measure(full_rank_head(task, sharpness, "softmax"), task, 4000).error
        for sharpness in (10.0, 100.0, 1000.0, 10_000.0)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3


def test_the_encoder_by_hand_finds_the_farthest_point() -> None:
    hard = full_rank_encoder(FARTHEST, kind="hardmax")
    assert measure(hard, FARTHEST, 1000).error < 2e-6  # the gain is 1000: within 1e-3 of the answer
    errors = [
        measure(full_rank_encoder(FARTHEST, sharpness, sharpness), FARTHEST, 1000).error
        for sharpness in (10.0, 100.0, 1000.0)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01


@pytest.mark.parametrize("draw", ["aligned", "independent", "uniform-angle"])
def test_random_features_measure_as_their_closed_form_and_stay_above_the_bound(draw: str) -> None:
    task = Neighbours(dim=8, points=2, sampler="orthogonal")
    layer = random_features_layer(8, 256, seed=1, draw=draw)  # type: ignore[arg-type]
    found = measure(layer.net, task, 1 << 14)
    assert found.error == pytest.approx(layer.error, abs=5 * found.standard_error)
    bound = error_lower_bound(8, 1, 256, "scalar", highest_degree=9999).value
    assert bound is not None
    assert found.error > bound


@pytest.mark.parametrize("seed", range(6))
def test_random_layers_never_beat_the_bound(seed: int) -> None:
    """Any weights at all, with the best overall factor; general values, softmax or hardmax."""
    rng = np.random.default_rng(seed)
    dim, heads, rank = int(rng.integers(4, 12)), int(rng.integers(1, 20)), int(rng.integers(1, 3))
    task = Neighbours(dim=dim, points=2, sampler="orthogonal")
    shape = AttentionNetShape(
        token_dim=dim,
        outputs=dim,
        layer=AttentionShape(heads=heads, qk_dim=rank, v_dim=dim),
        kind="hardmax" if seed % 2 else "softmax",
    )
    net = AttentionNet(shape, seed=seed)
    inputs, targets = task.sample(20_000, seed)
    with torch.no_grad():
        outputs = net(inputs)
    scale = float((outputs * targets).sum() / outputs.square().sum())
    error = float((scale * outputs - targets).square().sum(-1).mean())
    bound = error_lower_bound(dim, rank, heads, highest_degree=9999).value
    assert error > (bound or 0.0)


@pytest.mark.parametrize(("dim", "heads"), [(8, 65), (16, 256)])
def test_the_vote_is_as_good_as_expected(dim: int, heads: int) -> None:
    expected = vote_error(dim, heads).expected.value
    assert expected is not None
    errors = [measure(majority_vote(dim, heads, seed), vote_task(dim), 3000) for seed in range(3)]
    mean = float(np.mean([found.error for found in errors]))
    assert mean == pytest.approx(expected, abs=0.02)  # directions differ from draw to draw


def test_the_published_vote() -> None:
    """d = 64, H = 1024: about 0.24 in expectation; 0.247 in the authors' simulation."""
    found = measure(majority_vote(64, 1024), vote_task(64), 4096)
    assert found.error == pytest.approx(0.24, abs=0.025)


def test_the_vote_really_has_rank_1_and_two_layers() -> None:
    shape = majority_vote(8, 10).shape
    assert [layer.qk_dim for layer in shape.layers] == [1, 1]
    one_layer = error_lower_bound(16, 1, 4096, "scalar", highest_degree=9999).value
    assert one_layer is not None
    assert measure(majority_vote(16, 4096), vote_task(16), 1500).error < one_layer


def test_constructions_come_back_from_the_disk(tmp_path: Path) -> None:
    nets = {
        "head": (full_rank_head(CROSS[3]), CROSS[3]),
        "features": (random_features_layer(6, 16).net, Neighbours(dim=6, points=2)),
        "encoder": (full_rank_encoder(FARTHEST), FARTHEST),
        "vote": (majority_vote(6, 9), vote_task(6)),
    }
    for name, (net, task) in nets.items():
        net.save_pretrained(tmp_path / name)
        loaded = type(net).from_pretrained(tmp_path / name)
        tokens, _ = task.sample(5, 0)
        assert torch.equal(loaded(tokens), net(tokens))
    assert isinstance(nets["vote"][0], EncoderNet)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: full_rank_head(FARTHEST), "see full_rank_encoder"),
        (lambda: full_rank_head(CROSS[0], sharpness=0.0), "sharpness must be a number above 0"),
        (lambda: full_rank_encoder(CROSS[0]), "self form"),
        (lambda: majority_vote(8, 0), "heads must be a whole number"),
        (lambda: random_features_layer(8, 0), "heads must be a whole number"),
    ],
)
def test_impossible_constructions_are_refused(make, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=sentence):
        make()


def test_the_published_formula_promises_more_than_its_layer_measures() -> None:
    task = Neighbours(dim=8, points=2, sampler="orthogonal")
    layer = random_features_layer(8, 512, seed=1, draw="published")
    right = random_features_layer(8, 512, seed=1, draw="uniform-angle")
    found = measure(layer.net, task, 1 << 14)
    assert layer.error < right.error - 0.005
    assert found.error - layer.error > 5 * found.standard_error
    assert abs(found.error - layer.layer_error) < 5 * found.standard_error
    assert f"{layer.layer_error:.4f}" in str(layer)
    assert right.layer_error == right.error
    assert found.error > right.error  # weights of a wrong formula are not the best ones
