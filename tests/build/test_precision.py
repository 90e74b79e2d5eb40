"""A certificate is for the arithmetic that the network computes in, and for its own weights."""

import pytest
import torch

from headwise import build
from headwise.build.certify.precision import BRAIN, DOUBLE, SINGLE
from headwise.core.errors import InputError
from headwise.tasks import Bowl, Retrieval, max_plus_min, sum_of_maxima

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
