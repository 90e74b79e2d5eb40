"""Counting influential tokens: on functions whose intrinsic dimension is known."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import headwise
from headwise.advise.probe import Finding
from headwise.advise.probe.counting.sensitivity import measure_sensitivity
from headwise.advise.probe.evaluate import attempts
from headwise.advise.probe.samples.function import TargetFunction
from headwise.advise.probe.trials import draw_trial
from headwise.core.errors import InputError
from headwise.tasks import Affine, Bowl, Product, Retrieval, max_plus_min, sum_of_maxima

TASKS = {
    "paper": (sum_of_maxima(32), 4),
    "max plus min": (max_plus_min(20), 2),
    "bowls": (
        Retrieval(
            features=Bowl.random(5, 3, seed=2),
            length=24,
            extrema="min",
            inputs="uniform",
            outer=Product(),
        ),
        5,
    ),
    "subsets": (
        Retrieval(
            features=Affine.random_unit(3, 2, seed=1),
            length=16,
            subsets=(tuple(range(8)), tuple(range(4, 16)), tuple(range(16))),
        ),
        3,
    ),
}


def noisy(function: Callable[[Tensor], Tensor], scale: float) -> Callable[[Tensor], Tensor]:
    rng = np.random.default_rng(5)
    return lambda inputs: (
        function(inputs) + scale * torch.from_numpy(rng.standard_normal(len(inputs)))
    )


@pytest.mark.parametrize("as_tensor", [True, False])
def test_a_target_may_change_its_input_in_place(as_tensor: bool) -> None:
    """Centred in place by what is known of the tokens, then two maxima."""

    def draw(count: int, seed: tuple[int, ...]) -> Tensor | np.ndarray:
        drawn = np.random.default_rng(seed).standard_normal((count, 16, 2)) + 3.0
        return torch.from_numpy(drawn) if as_tensor else drawn

    def target(inputs: Tensor | np.ndarray) -> Tensor | np.ndarray:
        inputs -= 3.0
        inputs *= 2.0
        largest = inputs.amax(1) if isinstance(inputs, Tensor) else inputs.max(1)
        return largest[:, 0] + largest[:, 1] ** 2

    found = headwise.probe(target=target, sampler=draw, train=False)
    assert found.heads == 2


def test_an_answer_says_what_is_too_small_to_be_counted() -> None:
    """Of two maxima the second has 5e-4 of the weight, which noise of 1 % hides, or has 5e-2."""
    task = sum_of_maxima(16, 2, token_dim=2)

    def weighted(weight: float) -> Callable[[Tensor], Tensor]:
        return lambda inputs: inputs[..., 0].amax(1) + weight * inputs[..., 1].amax(1)

    def asked(target: Callable[[Tensor], Tensor]) -> Finding:
        return headwise.probe(target=target, sampler=lambda n, s: task.sample(n, s)[0], train=False)

    for target, weight, heads in (
        (weighted(5e-2), 5e-2, 2),
        (weighted(5e-4), 5e-4, 1),
        (noisy(weighted(5e-4), 2e-3), 5e-4, 1),
    ):
        found = asked(target)
        assert found.heads == heads
        assert found.precision is not None
        assert (found.precision > weight**2) == (heads == 1)


@pytest.mark.parametrize("name", TASKS)
def test_every_method_counts_the_features(name: str) -> None:
    task, intrinsic_dim = TASKS[name]
    scale = 0.01 * task.variance() ** 0.5

    def draw(count: int, seed: tuple[int, ...]) -> np.ndarray:
        return task.sample(count, seed)[0].numpy()

    def opaque(inputs: np.ndarray) -> np.ndarray:
        return task.oracle(torch.from_numpy(inputs)).numpy()

    def single(inputs: np.ndarray) -> np.ndarray:
        return task.oracle(torch.from_numpy(inputs).float()).numpy()

    found = {
        "gradients": measure_sensitivity(TargetFunction(task.oracle, task.sample)),
        "differences": measure_sensitivity(TargetFunction(opaque, draw)),
        "copies": measure_sensitivity(TargetFunction(noisy(task.oracle, scale), task.sample)),
    }
    for method, counted in found.items():
        assert counted.method == method
        assert counted.count == intrinsic_dim
        assert counted.sparse
        assert counted.counts.max() <= intrinsic_dim
    assert measure_sensitivity(TargetFunction(single, draw)).count == intrinsic_dim
    assert 0.005 < found["copies"].noise < 0.03


def test_fresh_random_tasks_with_noise() -> None:
    found = list(attempts(seed=31, tasks=12, data=False))
    assert {attempt.off for attempt in found} <= {0, None}  # right, or refused
    answered = [attempt for attempt in found if attempt.off is not None]
    assert len(answered) >= 11
    assert all(attempt.finding.confident for attempt in answered)


def test_a_mean_is_no_retrieval() -> None:
    def draw(count: int, seed: tuple[int, ...]) -> np.ndarray:
        return np.random.default_rng(seed).standard_normal((count, 10, 2))

    counted = measure_sensitivity(TargetFunction(lambda x: x.mean((1, 2)), draw))
    assert counted.count == 10
    assert not counted.sparse


def test_the_function_alone_gives_a_finding() -> None:
    task = sum_of_maxima(32)

    def of_any_length(inputs: Tensor) -> Tensor:
        return task.features(inputs).amax(1).sum(-1)

    finding = headwise.probe(target=of_any_length, sampler=task.sample)
    assert (finding.heads, finding.interval) == (4, (4, 4))
    assert finding.confident
    assert "4 of 32 tokens" in str(finding)
    assert "4 of 16, 4 of 32" in str(finding)  # as many matter in half a sequence
    assert finding.evidence["value"].sum() >= 256
    assert finding.figure().to_dict()["title"]["text"].startswith("4 heads")


def test_several_outputs_share_heads() -> None:
    task = sum_of_maxima(16, intrinsic_dim=3)

    def both(inputs: Tensor) -> Tensor:
        features, _ = task.retrieve(inputs)
        return torch.stack([features[:, 0], features[:, 1] + features[:, 2]], 1)

    assert headwise.probe(target=both, sampler=task.sample).heads == 3


def test_a_constant_function_gets_no_number() -> None:
    task = sum_of_maxima(8)
    finding = headwise.probe(target=lambda x: 0 * x[:, 0, 0] + 2, sampler=task.sample)
    assert finding.heads is None
    assert "constant" in finding.sentence


@pytest.mark.parametrize(
    ("function", "sampler", "sentence"),
    [
        (lambda x: x, lambda n, s: np.zeros((n, 3, 2)), "expected one number"),
        (lambda x: x[:, 0, 0] * np.nan, lambda n, s: np.ones((n, 3, 2)), "NaN or infinite"),
        (lambda x: x[:, 0, 0], lambda n, s: np.ones((n, 3)), r"expected \(\d+, length, token_dim"),
        (lambda x: x[:, 0, 0], lambda n, s: np.full((n, 3, 2), np.inf), "NaN or infinite"),
        (3, lambda n, s: np.ones((n, 3, 2)), "the target is a function"),
    ],
)
def test_unusable_functions_get_a_sentence(
    function: object, sampler: object, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        headwise.probe(target=function, sampler=sampler)


def test_trials_are_a_function_of_seed_and_index() -> None:
    assert str(draw_trial(4, 2)) == str(draw_trial(4, 2))
    first, second = (draw_trial(4, 2).sample(5, (1, 2)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    kinds = {(t.kind, t.outer) for t in (draw_trial(0, index) for index in range(60))}
    assert len(kinds) == 10
