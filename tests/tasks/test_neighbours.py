"""Neighbours on the sphere: exact answers, the right distributions, streams that never repeat."""

import numpy as np
import pytest
import torch

from headwise.core.errors import InputError
from headwise.core.spec import canonical_json, from_data, to_data
from headwise.tasks import InContextRegression, Neighbours, TokenTask, measure
from headwise.training.stream.data import Stream, validation_set

CASES = [
    Neighbours(dim=5, points=4),
    Neighbours(dim=5, points=4, target="farthest"),
    Neighbours(dim=5, points=3, biases=(0.0, 0.5, -0.5), queries="gaussian"),
    Neighbours(dim=6, points=2, sampler="orthogonal"),
    Neighbours(dim=6, points=4, sampler="antipodal", target="farthest"),
    Neighbours(dim=5, points=4, form="self"),
    Neighbours(dim=5, points=4, form="self", target="farthest"),
    Neighbours(dim=5, points=4, positions="additive"),
    Neighbours(dim=5, points=4, positions="concatenated", position_dim=7, form="self"),
]


def points_of(task: Neighbours, tokens: torch.Tensor) -> torch.Tensor:
    points = tokens[:, : task.points, : task.dim]
    return points - task.codes() if task.positions == "additive" else points


@pytest.mark.parametrize("task", CASES, ids=str)
def test_answers_are_those_of_a_search_by_distance(task: Neighbours) -> None:
    """The oracle argues with inner products; here every distance is computed, one by one."""
    tokens, answers = task.sample(40, seed=3)
    assert tokens.shape == (40, task.length, task.token_dim)
    points = points_of(task, tokens).double().numpy()
    for row in range(40):
        queries = points[row] if task.form == "self" else tokens[row, -1:, : task.dim].numpy()
        for index, query in enumerate(queries):
            costs = []
            for other, point in enumerate(points[row]):
                cost = np.linalg.norm(point - query) ** 2
                cost = -cost if task.target == "farthest" else cost
                cost -= 2 * task.biases[other] if task.biases else 0.0
                itself = task.form == "self" and other == index
                costs.append(np.inf if itself else cost)
            best = points[row][int(np.argmin(costs))]
            np.testing.assert_allclose(answers[row, index].numpy(), best, atol=1e-5)


@pytest.mark.parametrize("task", CASES, ids=str)
def test_points_lie_on_the_sphere_and_answering_zero_scores_one(task: Neighbours) -> None:
    tokens, _ = task.sample(2000, seed=0)
    lengths = points_of(task, tokens).norm(dim=-1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths), atol=2e-5, rtol=0)
    assert measure(torch.zeros_like, CASES[0], 100).error == pytest.approx(1.0, abs=1e-5)
    mean = points_of(task, tokens).mean((0, 1))
    assert float(mean.abs().max()) < 0.05  # uniform: centred


def test_samplers_have_their_angles() -> None:
    pair, _ = Neighbours(dim=6, points=2, sampler="orthogonal").sample(500, 0)
    inner = (pair[:, 0] * pair[:, 1]).sum(-1)
    assert float(inner.abs().max()) < 1e-6
    both, _ = Neighbours(dim=6, points=4, sampler="antipodal").sample(500, 0)
    assert torch.equal(both[:, :2], -both[:, 2:4])


def test_codes_are_orthonormal_and_the_same_for_every_sequence() -> None:
    task = Neighbours(dim=5, points=4, positions="concatenated", position_dim=7)
    codes = task.codes()
    torch.testing.assert_close(codes @ codes.T, torch.eye(4), atol=1e-6, rtol=0)
    tokens, _ = task.sample(3, 0)
    assert torch.equal(tokens[:, :4, 5:], codes.expand(3, -1, -1))
    assert not tokens[:, 4, 5:].any()


@pytest.mark.parametrize("task", [CASES[0], CASES[5], InContextRegression(dim=3, shots=4)], ids=str)
def test_the_data_of_a_seed_do_not_depend_on_the_batch_and_never_repeat(task: TokenTask) -> None:
    def read(batch: int, total: int, seed: int = 1) -> torch.Tensor:
        stream = Stream(task, data_seed=0, seed=seed)
        return torch.cat([stream.take(batch)[0] for _ in range(total // batch)])

    total = 60_000  # more than one block
    whole = read(total, total)
    assert torch.equal(read(1000, total), whole)
    assert torch.equal(read(480, total), whole)
    rows = whole.flatten(1).numpy()
    assert len(np.unique(rows, axis=0)) == total
    other = read(10_000, 10_000, seed=2)
    validation, _ = validation_set(task, 10_000, data_seed=0)
    seen = {row.tobytes() for row in rows}
    for apart in (other, validation):
        assert not any(row.tobytes() in seen for row in apart.flatten(1).numpy())


def test_regression_is_answered_by_least_squares_once_there_are_enough_shots() -> None:
    task = InContextRegression(dim=3, shots=5)
    tokens, values = task.sample(50, seed=0)
    answers = task.oracle(tokens)
    torch.testing.assert_close(answers[:, 3:], values[:, 3:], atol=1e-3, rtol=1e-3)
    assert float((answers[:, 0] - values[:, 0]).square().mean()) > 1
    assert measure(task.oracle, task, 200).error < 1e-5
    zero = measure(lambda tokens: tokens[..., :1] * 0, task, 20_000)
    assert zero.error == pytest.approx(1.0, abs=0.05)
    with pytest.raises(InputError, match="do not answer"):
        measure(torch.zeros_like, task)
    torch.testing.assert_close(tokens[:, 1::2, 0], values[:, :-1, 0])
    assert not tokens[:, 1::2, 1:].any()


def test_tasks_are_specifications() -> None:
    for task in (*CASES, InContextRegression(dim=3, shots=4)):
        assert from_data(to_data(task)) == task
    assert len({canonical_json(task) for task in CASES}) == len(CASES)
    first, second = CASES[0].sample(10, (1, 2)), CASES[0].sample(10, (1, 2))
    assert torch.equal(first[0], second[0])


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"dim": 1}, "dim is 1"),
        ({"points": 1}, "points is 1"),
        ({"form": "self", "points": 2}, "the least here is 3"),
        ({"target": "middle"}, "accepted are nearest, farthest"),
        ({"sampler": "orthogonal", "points": 9}, "no 9 orthogonal points"),
        ({"sampler": "antipodal", "points": 3}, "even in number"),
        ({"biases": (1.0,)}, "one number for each"),
        ({"positions": "concatenated"}, "position_dim"),
        ({"positions": "additive", "points": 9}, "cannot tell 9 points apart"),
        ({"form": "self", "queries": "gaussian"}, "the points are the queries"),
    ],
)
def test_impossible_tasks_are_refused(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Neighbours(**{"dim": 8, "points": 4, **fields})  # type: ignore[arg-type]
