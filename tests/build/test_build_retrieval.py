"""Networks from the proof: certified ≤ asked, attacked ≤ certified, and not by padding."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from headwise import build
from headwise.build.certify.random_tasks import draw_trials
from headwise.core.errors import InputError
from headwise.core.spec import from_data
from headwise.nets import ClassTokenNet
from headwise.tasks import (
    Affine,
    Bowl,
    Function,
    Product,
    Retrieval,
    WeightedSum,
    max_plus_min,
    sum_of_maxima,
)
from headwise.theory.head_count import softmax_min_error

TRIALS = list(draw_trials(36))


def bent(tokens: Tensor) -> Tensor:
    return (tokens - 0.3).abs().sum(-1, keepdim=True)


def bent_task(**declared: float) -> Retrieval:
    features = Function(function=bent, count=1, token_dim=1, **declared)  # type: ignore[arg-type]
    return Retrieval(features=features, length=6, inputs="uniform")


def test_the_trials_cover_what_they_should() -> None:
    tasks = [trial.task for trial in TRIALS]
    assert {task.intrinsic_dim for task in tasks} == {1, 2, 3, 4, 5, 6}
    assert {task.token_dim for task in tasks} == {1, 2, 3, 4}
    assert min(task.length for task in tasks) <= 8
    assert max(task.length for task in tasks) >= 190
    assert {type(task.outer).__name__ for task in tasks} >= {"Sum", "WeightedSum", "Product"}
    assert {bool(task.subsets) for task in tasks} == {True, False}
    assert {sign for task in tasks for sign in task.signs} == {1.0, -1.0}


@pytest.mark.parametrize("index", range(len(TRIALS)))
def test_certified_is_at_most_asked_and_no_attack_exceeds_it(index: int) -> None:
    trial = TRIALS[index]
    built, attack = trial.run(rounds=1)
    certificate = built.certificate
    assert certificate.error <= trial.error
    assert attack.worst <= certificate.error
    assert built.net.shape.layers[0].heads == trial.heads
    assert built.net.shape.layers[0].v_dim == 2
    assert certificate.error == pytest.approx(sum(term.value for term in certificate.terms))


AFFINE = [
    sum_of_maxima(64),
    max_plus_min(16),
    replace(sum_of_maxima(24, 3), outer=WeightedSum(weights=(2.0, -1.0, 0.5))),
    replace(sum_of_maxima(40, 3), extrema=("min", "max", "min")),
    Retrieval(
        features=Affine.random_unit(2, 3),
        length=12,
        inputs="uniform",
        subsets=((0, 2, 4, 6), (1, 2, 3)),
    ),
]


@pytest.mark.parametrize("task", AFFINE)
def test_the_softmax_term_is_attained(task: Retrieval) -> None:
    certificate = build.retrieval(task, 1e-2).certificate
    softmax = certificate.term("softmax temperature").value
    assert softmax >= 0.99 * certificate.error
    attack = certificate.attack(rounds=3)
    wanted = 0.9 if task.token_dim > 1 else 0.5  # scalar tokens cannot tie for both features
    assert wanted * softmax <= attack.worst <= certificate.error


@pytest.mark.parametrize(("length", "most"), [(8, 1e-6), (128, 1e-5)])
def test_the_papers_target_at_beta_100(length: int, most: float) -> None:
    task = sum_of_maxima(length)
    built = build.retrieval(task, temperature=1 / 100)
    inputs = task.sample(20_000, seed=7)[0].double()
    targets = task.oracle(inputs)
    error = (built.net(inputs).squeeze(1) - targets).square().mean() / targets.var()
    assert float(error) <= most
    assert built.certificate.holds_on(inputs)


def test_the_paper_target_has_one_small_head_a_feature() -> None:
    shape = build.retrieval(sum_of_maxima(64), 1e-3).net.shape
    assert (shape.layers[0].heads, shape.layers[0].qk_dim, shape.layers[0].v_dim) == (4, 2, 2)
    assert shape.embed_dim == 8


def test_extra_heads_change_nothing() -> None:
    task = AFFINE[-1]
    inputs = task.sample(200, seed=1)[0].double()
    lean, rich = (build.retrieval(task, 0.01, heads=heads) for heads in (2, 5))
    torch.testing.assert_close(lean.net(inputs), rich.net(inputs), rtol=0, atol=1e-13)


def test_gated_positions_are_ignored() -> None:
    task = AFFINE[-1]
    net = build.retrieval(task, 0.01).net
    inputs = task.sample(50, seed=1)[0].double()
    changed = inputs.clone()
    changed[:, [5, 7, 8, 9, 10, 11]] = 1.0  # in neither subset
    torch.testing.assert_close(net(inputs), net(changed), rtol=0, atol=1e-12)


@pytest.mark.parametrize("length", [4, 16, 300])
def test_other_lengths_get_their_own_certificate(length: int) -> None:
    built = build.retrieval(sum_of_maxima(64), 1e-2)
    other = built.at_length(length)
    assert other.net is built.net
    ratio = (
        softmax_min_error(length, 1.0).value / softmax_min_error(64, 1.0).value  # type: ignore[operator]
    )
    assert other.certificate.error == pytest.approx(ratio * built.certificate.error, rel=1e-3)
    attack = other.certificate.attack(rounds=2)
    assert 0.9 * other.certificate.error <= attack.worst <= other.certificate.error


def test_a_shorter_sequence_keeps_what_is_left_of_the_subsets() -> None:
    built = build.retrieval(AFFINE[-1], 1e-2)
    shorter = built.at_length(5)
    assert shorter.task.subsets == ((0, 2, 4), (1, 2, 3))
    attack = shorter.certificate.attack(rounds=2)
    assert 0.9 * shorter.certificate.error <= attack.worst <= shorter.certificate.error
    with pytest.raises(InputError, match="knows 12 positions"):
        built.at_length(13)
    with pytest.raises(InputError, match="subset would be empty"):
        built.at_length(1)


def test_the_saved_network_is_the_certified_one(tmp_path: Path) -> None:
    built = build.retrieval(AFFINE[-1], 1e-3)
    built.save_pretrained(tmp_path)
    again = ClassTokenNet.from_pretrained(tmp_path)
    assert {value.dtype for value in again.parameters()} == {torch.float64}
    inputs = built.task.sample(100, seed=3)[0].double()
    assert torch.equal(again(inputs), built.net(inputs))
    kept = json.loads((tmp_path / "specification.json").read_text())
    assert kept.pop("construction") == "retrieval"
    rebuilt = build.retrieval(from_data(kept.pop("task")), **kept)
    assert torch.equal(rebuilt.net(inputs), built.net(inputs))
    assert {file.name for file in tmp_path.iterdir()} == {
        "certificate.json",
        "config.json",
        "model.safetensors",
        "specification.json",
    }


def test_the_rounding_term_bounds_what_single_precision_inputs_show() -> None:
    """At a tiny temperature rounding is all there is: the error found is within its term."""
    task = max_plus_min(32)
    certificate = build.retrieval(task, temperature=1e-9).certificate
    attack = certificate.attack(rounds=2)
    assert attack.worst <= certificate.error
    assert 0 < certificate.term("float arithmetic").value < 1e-11


def test_a_certificate_says_where_it_holds() -> None:
    certificate = build.retrieval(max_plus_min(4), 0.1).certificate
    with pytest.raises(InputError, match="tokens in its box only"):
        certificate.holds_on(torch.full((1, 4, 1), 1.5))
    with pytest.raises(InputError, match="sequences of shape"):
        certificate.holds_on(torch.zeros(1, 5, 1))
    with pytest.raises(InputError, match="tokens in its box only"):
        certificate.holds_on(torch.full((1, 4, 1), torch.nan))


def test_a_broken_network_is_found_out() -> None:
    certificate = build.retrieval(sum_of_maxima(8), 1e-2).certificate
    samples = certificate.task.sample(10, seed=0)[0]
    small = tuple(replace(term, value=1e-3 * term.value) for term in certificate.terms)
    understated = replace(certificate, terms=small)
    assert not understated.attack(rounds=1)
    assert not understated.holds_on(samples)
    with torch.no_grad():
        certificate.net.get_parameter("readout.1.bias").add_(0.02)
    with pytest.raises(InputError, match="it has been changed since"):
        certificate.attack(rounds=1)
    with pytest.raises(InputError, match="it has been changed since"):
        certificate.holds_on(samples)


def test_gaussian_tokens_need_a_box_where_a_range_is_needed() -> None:
    bowls = Retrieval(features=Bowl.random(2, 2), length=8, extrema="min")
    with pytest.raises(InputError, match="give a box"):
        build.retrieval(bowls, 0.1)
    certificate = build.retrieval(bowls, 0.1, box=(-3.0, 3.0)).certificate
    assert certificate.error <= 0.1
    assert any("with probability 0.0" in sentence for sentence in certificate.assumptions)
    assert certificate.attack(rounds=1)


@pytest.mark.parametrize(
    ("task", "options", "sentence"),
    [
        (sum_of_maxima(8), {"error": -1.0}, "error must be a number above 0"),
        (sum_of_maxima(8), {"error": 0.0}, "error must be a number above 0"),
        (sum_of_maxima(8), {}, "give the error to reach, or a temperature"),
        (sum_of_maxima(8), {"error": 0.1, "heads": 0}, "heads must be a whole number"),
        (sum_of_maxima(8), {"error": 0.1, "heads": 3}, "3 heads are too few"),
        (sum_of_maxima(8), {"error": 0.1, "box": (1.0, 1.0)}, "box is two finite numbers"),
        (sum_of_maxima(8), {"error": 0.1, "temperature": 1.0}, "cannot be certified"),
        (sum_of_maxima(8), {"error": 1e-13}, "cannot be certified"),
        (bent_task(), {"error": 0.1}, "no declared constants"),
        (bent_task(lipschitz=0.5), {"error": 0.1}, "declared Lipschitz constant .* is 0.5"),
        (bent_task(lipschitz=-1), {"error": 0.1}, "lipschitz of the features must be .* not -1"),
        (bent_task(curvature=0.1), {"error": 0.1}, "second-derivative bound .* is 0.1"),
        (bent_task(lipschitz=1, high=0.5), {"error": 0.1}, "declared range"),
        (bent_task(lipschitz=1), {"temperature": 0.1}, "give the error to reach"),
        (
            bent_task(lipschitz=1),
            {"error": 1e-12, "max_bytes": 2**30},
            r"would have [\d.e+,]+ parameters, [\d.e+,]+ [GT]iB",
        ),
        (
            Retrieval(features=Bowl.random(3, 3), outer=Product(), length=4, inputs="uniform"),
            {"error": 1e-30},
            r"would have [\d.e+,]+ parameters",
        ),
        (sum_of_maxima(8), {"error": 1e-300}, "from 1e-30 to"),
        (sum_of_maxima(8), {"temperature": 1e-300}, "from 1e-30 to"),
    ],
)
def test_what_cannot_be_certified_is_refused(
    task: Retrieval, options: dict[str, float], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        build.retrieval(task, **options)  # type: ignore[arg-type]


def test_functions_in_too_many_dimensions_are_refused_and_products_are_not() -> None:
    code = Function(function=lambda x: x.sum(-1, keepdim=True), count=1, token_dim=7, lipschitz=3.0)
    with pytest.raises(InputError, match="in up to 6"):
        build.retrieval(Retrieval(features=code, length=4, inputs="uniform"), 0.1)
    task = Retrieval(features=Affine.random_unit(5, 4), length=8, outer=Product(), inputs="uniform")
    assert build.retrieval(task, 0.5).certificate.attack(rounds=1)


def test_an_outer_function_must_declare_how_far_it_moves() -> None:
    outer = Function(function=lambda z: z.sum(-1), count=2, curvature=0.0)
    task = replace(max_plus_min(4), outer=outer)
    with pytest.raises(InputError, match="without a Lipschitz constant"):
        build.retrieval(task, 0.1)
    exact = replace(task, outer=replace(outer, lipschitz=2**0.5))
    certificate = build.retrieval(exact, 0.1).certificate
    assert certificate.term("outer map").value == 0
