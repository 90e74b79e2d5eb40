"""n-gram targets: what they are made of, and the least error of anyone who answers them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headwise.core.errors import InputError
from headwise.tasks import NGram, four_gram, measure

TASKS = {
    "paper": four_gram(),
    "decaying": NGram(length=12, lags=(1, 4, 2), dim=2, decay=0.5),
    "tanh": four_gram(dim=3, target="tanh", decay=0.7),
    "bilinear": NGram(length=10, lags=(0, 2, 5), dim=2, target="bilinear", noise=0.3),
    "noisy": NGram(length=8, lags=(0, 3), noise=0.5),
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("hidden", [0, 1, 2])
def test_the_oracle_that_sees_some_lags_reaches_the_least_error(task: NGram, hidden: int) -> None:
    visible = task.lags[: len(task.lags) - min(hidden, len(task.lags))]
    found = measure(lambda tokens: task.oracle(tokens, visible), task, 1 << 13)
    assert abs(found.error - task.least_error(visible)) < 5 * found.standard_error + 1e-9


@pytest.mark.parametrize("name", ["paper", "decaying", "noisy"])
def test_least_squares_on_the_visible_lags_does_no_better(name: str) -> None:
    """An independent optimum: regression of the target on all tokens that are seen."""
    task = replace(TASKS[name], length=8)
    inputs, targets = (part.double().numpy() for part in task.sample(20_000, seed=3))
    last = task.length - 1
    for visible in (task.lags, task.lags[:1], task.lags[1:]):
        seen = np.concatenate([inputs[:, last - lag] for lag in visible], 1)
        wanted = targets[:, -1]
        weights = np.linalg.lstsq(seen, wanted, rcond=None)[0]
        error = np.square(wanted - seen @ weights).sum(1).mean() / task.scale
        assert error == pytest.approx(task.least_error(visible), abs=0.02)


def test_targets_are_the_formula_at_every_token() -> None:
    task = NGram(length=9, lags=(2, 0), dim=3, target="linear", decay=0.5)
    inputs, targets = task.sample(4, seed=1)
    assert targets.shape == (4, 7, 3)
    rotations = [
        task.oracle(torch.eye(3)[None].expand(9, 3, 3).transpose(0, 1), (lag,)) for lag in (2, 0)
    ]
    matrices = [answer[:, 0] for answer in rotations]  # row i: the answer to coordinate i
    weights = np.array([1, 0.5]) / np.sqrt(1.25)
    for matrix, weight in zip(matrices, weights, strict=True):
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(3) * float(weight) ** 2)
    for place in range(2, 9):
        by_hand = inputs[:, place - 2] @ matrices[0] + inputs[:, place] @ matrices[1]
        torch.testing.assert_close(targets[:, place - 2], by_hand, atol=1e-5, rtol=1e-5)


def test_data_are_a_function_of_fields_and_seed() -> None:
    task = TASKS["noisy"]
    assert torch.equal(task.sample(5, (1, 2))[1], task.sample(5, (1, 2))[1])
    assert not torch.equal(task.sample(5, 1)[0], task.sample(5, 2)[0])
    paper = TASKS["paper"]
    assert not torch.equal(paper.sample(5, 1)[1], replace(paper, seed=1).sample(5, 1)[1])


def test_answering_zero_scores_one() -> None:
    for task in TASKS.values():
        zero = measure(lambda tokens, dim=task.dim: torch.zeros(*tokens.shape[:2], dim), task)
        assert abs(zero.error - 1) < 5 * zero.standard_error + 1e-3
        assert task.least_error(()) == pytest.approx(1)


BAD = [
    ({"length": 3, "lags": (3,)}, "the length is at least 4"),
    ({"length": 8, "lags": ()}, "at least one"),
    ({"length": 8, "lags": (1, 1)}, "distinct"),
    ({"length": 8, "lags": (-1,)}, "not negative"),
    ({"length": 8, "lags": (1,), "target": "bilinear"}, "at least two"),
    ({"length": 8, "lags": (1,), "target": "cubic"}, "'linear', 'tanh' or 'bilinear'"),
    ({"length": 8, "lags": (1,), "decay": 0}, "decay is 0"),
]


@pytest.mark.parametrize(("fields", "sentence"), BAD)
def test_impossible_tasks_are_refused(fields, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=sentence):
        NGram(**fields)
