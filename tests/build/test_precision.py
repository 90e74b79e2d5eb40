"""A certificate is for the arithmetic that the network computes in, and for its own weights."""

import pytest
import torch

from headwise import build
from headwise.build.certify.precision import BRAIN, DOUBLE, SINGLE
from headwise.build.certify.random_tasks import draw_trial
from headwise.core.errors import InputError
from headwise.nets import ClassTokenNet
from headwise.tasks import Affine, Bowl, Retrieval, max_plus_min, sum_of_maxima

TASKS = [
    (sum_of_maxima(16), 1e-5),
    (max_plus_min(64), 1e-7),
    (
        Retrieval(features=Bowl.random(2, 2, 0), length=8, extrema="min", inputs="uniform"),
        1e-2,
    ),
]


@pytest.mark.parametrize(("task", "error"), TASKS, ids=["maxima", "extremes", "bowls"])
def test_single_precision_stays_within_its_own_certificate(task: Retrieval, error: float) -> None:
    built = build.retrieval(task, error)
    single = built.float()
    assert single.certificate.precision is SINGLE
    assert single.certificate.error > built.certificate.error
    attack = single.certificate.attack(rounds=2)
    assert attack.holds
    assert next(single.net.parameters()).dtype == torch.float32
    assert next(built.net.parameters()).dtype == torch.float64  # the built network is left alone


def test_single_precision_exceeds_what_double_precision_promises() -> None:
    built = build.retrieval(sum_of_maxima(16), 1e-7)
    attack = built.float().certificate.attack(rounds=1)
    assert attack.worst > built.certificate.error
    assert attack.holds


def test_the_brain_format_has_a_certificate_too() -> None:
    built = build.retrieval(max_plus_min(4), 0.5).bfloat16()
    assert built.certificate.precision is BRAIN
    assert built.certificate.attack(rounds=1).holds
    assert "bfloat16" in str(built)


def test_sums_that_are_too_long_for_a_precision_are_refused() -> None:
    with pytest.raises(InputError, match="nothing is promised of a sum of 1,016 terms"):
        build.retrieval(max_plus_min(500), 0.1).bfloat16()


def test_half_precision_is_refused() -> None:
    built = build.retrieval(max_plus_min(4), 0.1)
    with pytest.raises(InputError, match="float16: there is no certificate"):
        built.half()
    built.net.half()
    with pytest.raises(InputError, match="float16: there is no certificate"):
        _ = built.certificate


def test_converting_the_network_itself_renews_the_certificate() -> None:
    built = build.retrieval(sum_of_maxima(8), 1e-6)
    before = built.certificate
    built.net.float()
    with pytest.raises(InputError, match="for the network as it was, in double precision"):
        before.attack(rounds=1)
    with pytest.raises(InputError, match="for the network as it was"):
        before.holds_on(torch.zeros(1, 8, 4))
    assert built.certificate.precision is SINGLE
    assert built.certificate.error > 10 * before.error
    built.net.double()  # the weights stay rounded
    assert built.certificate.precision is SINGLE
    assert built.certificate.attack(rounds=1).holds


def test_changed_weights_have_no_certificate() -> None:
    built = build.retrieval(max_plus_min(4), 0.1)
    assert built.certificate.precision is DOUBLE
    with torch.no_grad():
        built.net.get_parameter("readout.0.weight").mul_(1 + 1e-12)
    with pytest.raises(InputError, match="no longer those that were built"):
        _ = built.certificate


def test_weights_changed_behind_autograds_back_have_no_certificate() -> None:
    built = build.retrieval(max_plus_min(4), 0.1)
    before = built.certificate
    built.net.get_parameter("readout.0.weight").data.mul_(2)  # leaves no trace in the version
    with pytest.raises(InputError, match="no longer those that were built"):
        _ = built.certificate
    with pytest.raises(InputError, match="for the network as it was"):
        before.attack(rounds=1)


def test_a_precision_that_cannot_hold_the_numbers_is_refused() -> None:
    steep = Retrieval(features=Affine(weights=((1e9,), (2e9,))), length=4, inputs="uniform")
    built = build.retrieval(steep, temperature=1e-30)
    assert built.certificate.attack(rounds=1).holds
    with pytest.raises(InputError, match=r"may exceed the largest that it holds, 3\.4e"):
        built.float()


def test_a_certificate_that_a_constant_would_meet_is_called_vacuous() -> None:
    gated = Retrieval(
        features=Bowl.random(2, 1, 0),
        length=8,
        extrema="min",
        subsets=((0, 1, 2), (4, 5)),
        inputs="uniform",
    )
    built = build.retrieval(gated, 0.01)
    assert not built.certificate.vacuous
    coarse = built.bfloat16()  # its rounding opens the gates: still a bound, of no use
    assert coarse.certificate.vacuous
    assert coarse.certificate.attack(rounds=1).holds
    assert "; vacuous, a constant errs by at most" in str(coarse.certificate)
    assert coarse.certificate.to_data()["vacuous"] is True


@pytest.mark.parametrize("seed", range(6))
def test_no_way_of_computing_a_random_network_exceeds_its_certificate(seed: int) -> None:
    """Layer by layer and unfolded, sums from the last token to the first: not as `nets` does."""
    trial = draw_trial(seed % 2, 77 + seed)  # affine features and bowls
    built = build.retrieval(trial.task, trial.error)
    tokens = torch.rand(16, trial.task.length, trial.task.token_dim, generator=torch.manual_seed(1))
    short = trial.task.length < 100  # nothing is promised of longer sums in bfloat16
    for each in (built, built.float(), built.bfloat16() if short else built):
        read = tokens.to(each.certificate.precision.dtype)
        found = _unfolded(each.net, read) - trial.task.oracle(read.double())
        assert float(found.abs().max()) <= each.certificate.error


def _unfolded(net: ClassTokenNet, tokens: torch.Tensor) -> torch.Tensor:
    p, shape = dict(net.named_parameters()), net.shape

    def mlp(rows: torch.Tensor, name: str, hidden: int) -> torch.Tensor:
        for index in range(hidden + 1):
            rows = rows @ p[f"{name}.{index}.weight"].T + p[f"{name}.{index}.bias"]
            rows = torch.relu(rows) if index < hidden else rows
        return rows

    stream = mlp(tokens, "embed", len(shape.embed.widths))
    stream = stream + p["positions"] if shape.positions else stream
    heads = (*stream.shape[:2], shape.layers[0].heads, 2)
    query = (p["layers.0.query.weight"] @ p["class_token"]).view(heads[2:])
    keys = (stream @ p["layers.0.key.weight"].T).view(heads)
    values = (stream @ p["layers.0.value.weight"].T).view(heads)
    weights = torch.softmax((keys * query).sum(-1), 1).unsqueeze(-1)
    pooled = (weights * values).flip(1).cumsum(1)[:, -1].flatten(1)
    mixed = pooled @ p["layers.0.out.weight"].T
    return mlp(mixed, "readout", len(shape.readout.widths))[:, 0].double()


def test_a_certificate_does_not_cost_the_length() -> None:
    built = build.retrieval(sum_of_maxima(10**9), 1e-2)
    assert built.certificate.error <= 1e-2


def test_small_errors_and_more_features_than_tokens_are_built() -> None:
    for error in (1e-9, 1e-10):
        built = build.retrieval(sum_of_maxima(64), error)
        assert built.certificate.error <= error
        assert built.certificate.attack(rounds=1).holds
    short = build.retrieval(sum_of_maxima(2), 1e-3)  # four features of two tokens
    assert short.certificate.attack(rounds=1).holds
    assert short.at_length(1).certificate.attack(rounds=1).holds
    with pytest.raises(InputError, match="a smaller box of tokens or a larger error helps"):
        build.retrieval(sum_of_maxima(64), 1e-12)
    assert build.retrieval(sum_of_maxima(64), 1e-11, box=(-6, 6)).certificate.error <= 1e-11
