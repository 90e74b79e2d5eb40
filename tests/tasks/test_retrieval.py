"""Retrieval tasks: the exact answer, reproducible data, and honest assumptions."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headwise.core.errors import InputError
from headwise.core.spec import canonical_json, from_data
from headwise.tasks import (
    PRESETS,
    Affine,
    Bowl,
    Function,
    Product,
    Retrieval,
    Sum,
    WeightedSum,
    check_assumptions,
    max_plus_min,
    sum_of_maxima,
)

KNOWN_INPUTS = [1.1176220, -1.3871249, -0.4265716]  # sum_of_maxima(4).sample(2, seed=0)
KNOWN_TARGETS = [3.7700586, 4.2471886]


def by_hand(task: Retrieval, sequence: np.ndarray) -> float:
    """The definition, token by token, in plain Python."""
    values = []
    for i, sign in enumerate(task.signs):
        positions = task.subsets[i] if task.subsets else range(task.length)
        scores = []
        for t in positions:
            if isinstance(task.features, Affine):
                offset = task.features.offsets[i] if task.features.offsets else 0.0
                score = float(np.dot(task.features.weights[i], sequence[t])) + offset
            else:
                assert isinstance(task.features, Bowl)
                kappa = task.features.curvatures[i] if task.features.curvatures else 1.0
                score = kappa * float(((sequence[t] - task.features.centres[i]) ** 2).sum())
            scores.append(score)
        values.append(max(scores) if sign > 0 else min(scores))
    if isinstance(task.outer, Product):
        return float(np.prod(values))
    weights = task.outer.weights if isinstance(task.outer, WeightedSum) else [1.0] * len(values)
    return float(np.dot(weights, values))


@st.composite
def tasks(draw: st.DrawFn) -> Retrieval:
    dim, token_dim = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    length, seed = draw(st.integers(1, 6)), draw(st.integers(0, 99))
    features = draw(
        st.sampled_from(
            [
                Affine.random_unit(dim, token_dim, seed),
                replace(Affine.random_unit(dim, token_dim, seed), offsets=(0.5,) * dim),
                Bowl.random(dim, token_dim, seed),
                replace(Bowl.random(dim, token_dim, seed), curvatures=(2.0,) * dim),
            ]
        )
    )
    positions = st.lists(st.integers(0, length - 1), min_size=1, unique=True).map(tuple)
    return Retrieval(
        features=features,
        length=length,
        outer=draw(st.sampled_from([Sum(), Product(), WeightedSum(weights=(1.5,) * dim)])),
        extrema=tuple(draw(st.sampled_from(["min", "max"])) for _ in range(dim)),
        subsets=draw(st.sampled_from([(), tuple(draw(positions) for _ in range(dim))])),
        inputs=draw(st.sampled_from(["gaussian", "uniform"])),
    )


@given(tasks(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_targets_are_the_definition(task: Retrieval, seed: int) -> None:
    inputs, targets = task.sample(3, seed)
    expected = [by_hand(task, sequence) for sequence in inputs.double().numpy()]
    np.testing.assert_allclose(targets.numpy(), expected, rtol=1e-5, atol=1e-6)


@given(tasks())
@settings(max_examples=30, deadline=None)
def test_a_task_survives_json(task: Retrieval) -> None:
    assert from_data(json.loads(canonical_json(task))) == task


def test_a_longer_sample_starts_with_the_shorter_one_and_seeds_differ() -> None:
    for task in (sum_of_maxima(5), max_plus_min(5)):
        short, long = task.sample(10, seed=7)[0], task.sample(1000, seed=7)[0]
        assert torch.equal(short, long[:10])
        assert not torch.equal(short, task.sample(10, seed=8)[0])


def test_data_are_the_same_on_every_machine() -> None:
    inputs, targets = sum_of_maxima(4).sample(2, seed=0)
    np.testing.assert_allclose(inputs.flatten()[:3], KNOWN_INPUTS, rtol=1e-6)
    np.testing.assert_allclose(targets, KNOWN_TARGETS, rtol=1e-5)


def test_inputs_have_the_distribution_that_is_said() -> None:
    gaussian = sum_of_maxima(8).sample(4000, 0)[0]
    uniform = max_plus_min(8).sample(4000, 0)[0]
    assert abs(float(gaussian.mean())) < 0.02
    assert abs(float(gaussian.std()) - 1) < 0.02
    assert float(uniform.min()) >= 0
    assert float(uniform.max()) <= 1
    assert abs(float(uniform.mean()) - 0.5) < 0.02


def test_variance_of_max_plus_min_matches_its_closed_form() -> None:
    # max and min of T uniforms: var each T/((T+1)²(T+2)), covariance 1/((T+1)²(T+2)).
    length = 9
    exact = 2 * (length + 1) / ((length + 1) ** 2 * (length + 2))
    assert max_plus_min(length).variance() == pytest.approx(exact, rel=0.05)


def test_orthonormal_directions_are_orthonormal() -> None:
    rows = np.array(Affine.orthonormal(3, 5, seed=2).weights)
    np.testing.assert_allclose(rows @ rows.T, np.eye(3), atol=1e-12)


def test_any_function_can_be_a_feature_or_an_outer_map() -> None:
    task = Retrieval(
        features=Function(function=_norms, count=1, token_dim=3),
        outer=Function(function=_cube, count=1),
        length=4,
        extrema="min",
    )
    inputs, targets = task.sample(5, 0)
    expected = inputs.norm(dim=-1).amin(1) ** 3
    torch.testing.assert_close(targets, expected)
    with pytest.raises(InputError, match="module:function"):
        canonical_json(task)
    named = replace(task.features, function="torch:abs", count=3)
    assert from_data(json.loads(canonical_json(named))) == named


def _norms(tokens: Tensor) -> Tensor:
    return tokens.norm(dim=-1, keepdim=True)


def _cube(features: Tensor) -> Tensor:
    return features[..., 0] ** 3


def verdicts(task: Retrieval) -> list[bool | None]:
    return [assumption.holds for assumption in check_assumptions(task)]


def test_the_papers_own_target_violates_its_assumptions_and_a_bowl_satisfies_them() -> None:
    paper = sum_of_maxima(16)
    assert verdicts(paper) == [False, True, True, False, False, True]
    assert "unbounded" in str(check_assumptions(paper)[0])
    bowl = Retrieval(features=Bowl.random(3, 2), length=16, extrema="min", inputs="uniform")
    assert verdicts(bowl) == [True] * 6
    small = replace(bowl, subsets=((0,), (1, 2, 3, 4), (2, 3, 4, 5)))
    assert verdicts(small)[1] is False


@pytest.mark.parametrize("name", PRESETS)
def test_presets_make_tasks_of_any_length(name: str) -> None:
    dims = {"paper": 4, "paper-d3": 3, "max-plus-min": 2}
    for length in (1, 7):
        task = PRESETS[name](length)
        assert (task.length, task.intrinsic_dim) == (length, dims[name])


BAD = [
    ({"length": 0}, "length is 0"),
    ({"extrema": "largest"}, "'min' or 'max'"),
    ({"extrema": ("min", "max")}, "each of the 4"),
    ({"subsets": ((0,),)}, "one set for each"),
    ({"subsets": ((9,),) * 4}, "positions from 0 to 7"),
    ({"inputs": "cauchy"}, "'gaussian' or 'uniform'"),
    ({"outer": WeightedSum(weights=(1.0,))}, "takes 1 features"),
]


@pytest.mark.parametrize(("change", "sentence"), BAD)
def test_impossible_tasks_are_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        replace(sum_of_maxima(8), **change)  # type: ignore[arg-type]


def test_bad_data_and_bad_functions_are_refused() -> None:
    task = sum_of_maxima(3)
    for bad in (float("nan"), float("inf")):
        inputs = torch.zeros(1, 3, 4)
        inputs[0, 1, 2] = bad
        with pytest.raises(InputError, match="NaN or infinite"):
            task.oracle(inputs)
    for count, path in itertools.product((1,), ("nothing", "no.module:f", "torch:no_such")):
        with pytest.raises(InputError, match="no function"):
            Function(function=path, count=count)
    with pytest.raises(InputError, match="must be finite"):
        Affine(weights=((float("nan"),),))
    with pytest.raises(InputError, match="orthonormal"):
        Affine.orthonormal(5, 4)
    with pytest.raises(InputError, match="empty"):
        task.sample(0, 1)
