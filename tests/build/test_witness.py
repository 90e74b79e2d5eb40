"""Witnesses: true for every readout, found where heads are too few, absent where they are not."""

from dataclasses import replace

import pytest
import torch

from headwise import build
from headwise.core.errors import InputError
from headwise.nets import ClassTokenNet, ClassTokenShape
from headwise.tasks import Retrieval, max_plus_min, sum_of_maxima
from headwise.training import Training, train


def trained(task: Retrieval, heads: int) -> ClassTokenNet:
    shape = ClassTokenShape.standard(token_dim=task.token_dim, heads=heads)
    training = Training(steps=500, rate=1e-2, samples=2000, validation=500, evaluations=2)
    return ClassTokenNet(shape, train(task, shape, training, [0])[0].params)


@pytest.fixture(scope="module")
def single_head() -> ClassTokenNet:
    return trained(sum_of_maxima(8), heads=1)


def test_too_few_trained_heads_confuse_inputs_that_the_target_does_not(
    single_head: ClassTokenNet,
) -> None:
    task = sum_of_maxima(8)
    deviation = task.variance() ** 0.5
    found = build.witness(single_head, task, reach=0.3, steps=80)
    assert found.forced_error() >= 0.5 * deviation
    assert found.network_error >= found.forced_error()
    assert found.forced_lipschitz(0.2 * deviation) > 100 * found.readout_lipschitz


def test_the_pair_is_what_it_says(single_head: ClassTokenNet) -> None:
    task = sum_of_maxima(8)
    found = build.witness(single_head, task, steps=40, starts=16, box=(-2.0, 2.0))
    pair = torch.stack([found.first, found.second])
    weights = {name: p.detach().double() for name, p in single_head.named_parameters()}
    hidden = ClassTokenNet(single_head.shape, weights).attend(pair).detach()
    assert float((hidden[0] - hidden[1]).norm()) == pytest.approx(
        found.representation_gap, abs=1e-12
    )
    assert float(task.oracle(pair).diff().abs()) == pytest.approx(found.target_gap)
    assert float(pair.abs().max()) <= 2


@pytest.mark.parametrize("heads", [4, 6])
def test_enough_built_heads_leave_nothing_beyond_their_certificate(heads: int) -> None:
    task = sum_of_maxima(8)
    built = build.retrieval(task, 1e-2, heads=heads)
    slope = 2.0  # of F_0, the sum of four features, in the Euclidean norm
    found = build.witness(built.net, task, lipschitz=slope, steps=60, starts=32)
    assert found.forced_error(slope) <= built.certificate.error
    assert found.target_gap <= slope * found.representation_gap + 2 * built.certificate.error


def test_a_head_that_holds_the_sequence_is_never_confused() -> None:
    task = max_plus_min(6)
    net = build.memorise(task, 0.2).net
    slope = 2.0 * task.length  # of the target, in tokens divided by the length
    found = build.witness(net, task, lipschitz=slope, steps=40, starts=16)
    assert found.forced_error(slope) <= 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_no_network_errs_less_than_its_witness_forces(seed: int) -> None:
    task = sum_of_maxima(6, intrinsic_dim=3, token_dim=2)
    shape = ClassTokenShape.standard(
        token_dim=2, heads=2, head_dim=3, width=6, layers=2, residual=True, norm=True
    )
    found = build.witness(ClassTokenNet(shape, seed=seed), task, steps=40, starts=16, seed=seed)
    assert found.network_error >= found.forced_error() > 0
    assert found.forced_error(1e9) <= found.forced_error(0.0) <= found.target_gap / 2
    assert found.forced_error(0.0) == pytest.approx(found.target_gap / 2)


def test_the_readouts_bound_is_above_every_slope_seen() -> None:
    net = ClassTokenNet(ClassTokenShape.standard(token_dim=2, heads=2), seed=1).double()
    bound = build.readout_lipschitz(net)
    hidden = torch.randn(200, 16, generator=torch.Generator().manual_seed(0)).double() * 3
    weights = {name: value for name, value in net.named_parameters() if "readout" in name}

    def readout(row: torch.Tensor) -> torch.Tensor:
        first = torch.nn.functional.gelu(
            weights["readout.0.weight"] @ row + weights["readout.0.bias"]
        )
        return (weights["readout.1.weight"] @ first + weights["readout.1.bias"])[0]

    slopes = torch.func.vmap(torch.func.grad(readout))(hidden).norm(dim=1).detach()
    assert 0 < float(slopes.max()) <= bound


def test_a_comparison_has_a_row_for_every_network_and_error(single_head: ClassTokenNet) -> None:
    task = sum_of_maxima(8)
    built = build.retrieval(task, 1e-3).net
    nets = {"trained": {1: single_head}, "built": {4: built}}
    rows = build.compare_witnesses(nets, task, steps=40, starts=16).records()
    forced = {row["group"]: row["error"] for row in rows if row["kind"].startswith("forced")}
    assert forced["trained"] > 0.5
    assert forced["built"] <= 1e-3
    assert len(rows) == 6


def test_bad_input_gets_a_sentence() -> None:
    net = ClassTokenNet(ClassTokenShape.standard(token_dim=4, heads=1))
    with pytest.raises(InputError, match="tokens are not the task's"):
        build.witness(net, max_plus_min(4))
    with pytest.raises(InputError, match="one output"):
        build.witness(ClassTokenNet(replace(net.shape, outputs=2)), sum_of_maxima(4))
    with pytest.raises(InputError, match="reach must be a number above 0"):
        build.witness(net, sum_of_maxima(4), reach=-1.0)
