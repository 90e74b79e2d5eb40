"""Neighbours on the sphere, the targets of the rank paper (arXiv 2407.16153).

Which of the points x_1 … x_N is nearest to a query y (argmax ⟨x_i, y⟩), farthest from it (argmin),
or nearest after a bias for its position (argmax ⟨x_i, y⟩ + b_i)? The answer is the point itself,
so answering zero has mean-square error E‖f‖² = 1.
"""

from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.tasks.protocols import LastTokenAnswers

_CODES = 0xC0DE  # the stream of the positions' codes, apart from every stream of data


@spec
class Neighbours(LastTokenAnswers):
    """Equal fields, equal data, on any machine.

    form "cross": the tokens are the points and then the query, and the query's answer is wanted.
    form "self": every point is a query among the others.

    sampler "iid": points uniform on the sphere; "orthogonal": an orthonormal frame, for two points
    the distribution of the theory; "antipodal": half of the points and then their negatives. The
    query is uniform on the sphere too, or standard Gaussian.

    positions "concatenated" appends the position's code (`position_dim` numbers) to a point,
    "additive" adds it. The codes are fixed random orthonormal vectors; a query has none (zeros).
    The answer is the point without its code.
    """

    dim: int
    points: int
    target: Literal["nearest", "farthest"] = "nearest"
    form: Literal["cross", "self"] = "cross"
    sampler: Literal["iid", "orthogonal", "antipodal"] = "iid"
    queries: Literal["sphere", "gaussian"] = "sphere"
    biases: tuple[float, ...] = ()
    positions: Literal["none", "concatenated", "additive"] = "none"
    position_dim: int = 0

    def __post_init__(self) -> None:
        require(self.dim >= 2, f"dim is {self.dim}; the least is 2")
        least = 3 if self.form == "self" else 2
        require(self.points >= least, f"points is {self.points}; the least here is {least}")
        _require_one_of("target", self.target, ("nearest", "farthest"))
        _require_one_of("form", self.form, ("cross", "self"))
        _require_one_of("sampler", self.sampler, ("iid", "orthogonal", "antipodal"))
        _require_one_of("queries", self.queries, ("sphere", "gaussian"))
        _require_one_of("positions", self.positions, ("none", "concatenated", "additive"))
        require(
            len(self.biases) in (0, self.points),
            f"biases needs one number for each of the {self.points} points, or none at all",
        )
        require(
            self.sampler != "orthogonal" or self.points <= self.dim,
            f"there are no {self.points} orthogonal points in dimension {self.dim}",
        )
        require(
            self.sampler != "antipodal" or self.points % 2 == 0,
            f"points and their negatives are even in number, not {self.points}",
        )
        require(
            self.form == "cross" or self.queries == "sphere",
            "in the self form the points are the queries, and they lie on the sphere",
        )
        require(
            (self.positions == "concatenated") == (self.position_dim > 0),
            "position_dim is the length of a concatenated code, and 0 without one",
        )
        room = {"none": self.points, "concatenated": self.position_dim, "additive": self.dim}
        require(
            self.points <= room[self.positions],
            f"codes of length {room[self.positions]} cannot tell {self.points} points apart",
        )

    @property
    def length(self) -> int:
        """Tokens in a sequence."""
        return self.points + (self.form == "cross")

    @property
    def token_dim(self) -> int:
        """Numbers in a token."""
        return self.dim + self.position_dim

    @property
    def outputs(self) -> int:
        """Numbers in an answer."""
        return self.dim

    @property
    def answers(self) -> slice:
        """The tokens whose outputs answer."""
        return slice(0, None) if self.form == "self" else slice(-1, None)

    def sample(
        self, count: int, seed: int | tuple[int, ...]
    ) -> tuple[Float[Tensor, "count length token_dim"], Float[Tensor, "count answers dim"]]:
        """`count` sequences and the right answers."""
        require(count >= 1, f"a sample of {count} sequences is empty")
        rng = np.random.default_rng(seed)
        points = torch.from_numpy(self._draw_points(rng, count))
        if self.form == "self":
            return self.tokens(points), self.oracle(points, points)
        query = rng.standard_normal((count, 1, self.dim), np.float32)
        queries = torch.from_numpy(_unit(query) if self.queries == "sphere" else query)
        return self.tokens(points, queries), self.oracle(points, queries)

    def oracle(
        self,
        points: Float[Tensor, "batch points dim"],
        queries: Float[Tensor, "batch queries dim"],
    ) -> Float[Tensor, "batch queries dim"]:
        """The exact answer to each query; in the self form a point is not its own neighbour."""
        scores = queries.double() @ points.double().mT  # (batch, queries, points)
        if self.target == "farthest":
            scores = -scores
        if self.biases:
            scores = scores + scores.new_tensor(self.biases)
        if self.form == "self":
            scores.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        chosen = scores.argmax(-1, keepdim=True).expand(-1, -1, self.dim)
        return points.gather(1, chosen)

    def tokens(
        self,
        points: Float[Tensor, "batch points dim"],
        queries: Float[Tensor, "batch queries dim"] | None = None,
    ) -> Float[Tensor, "batch length token_dim"]:
        """Points, with their positions' codes, and then the query: what a network reads."""
        if self.positions == "additive":
            points = points + self.codes()
        elif self.positions == "concatenated":
            points = torch.cat([points, self.codes().expand(len(points), -1, -1)], 2)
        if queries is None:
            return points
        return torch.cat([points, torch.nn.functional.pad(queries, (0, self.position_dim))], 1)

    def codes(self) -> Float[Tensor, "points code"]:
        """The positions' codes: orthonormal rows, the same for every sequence."""
        return _codes(self.points, self.position_dim or self.dim)

    def _draw_points(self, rng: np.random.Generator, count: int) -> np.ndarray:
        drawn = self.points // 2 if self.sampler == "antipodal" else self.points
        points = rng.standard_normal((count, drawn, self.dim), np.float32)
        if self.sampler == "orthogonal":
            return _frames(points)
        points = _unit(points)
        return np.concatenate([points, -points], 1) if self.sampler == "antipodal" else points


@lru_cache(maxsize=8)
def _codes(points: int, size: int) -> Tensor:
    rng = np.random.default_rng([points, size, _CODES])
    return torch.from_numpy(_frames(rng.standard_normal((1, points, size), np.float32))[0])


def _frames(
    vectors: Float[np.ndarray, "count size dim"],
) -> Float[np.ndarray, "count size dim"]:
    """Gram–Schmidt: of independent Gaussian vectors it makes a uniform orthonormal frame."""
    rows = vectors.astype(np.float64)
    for index in range(rows.shape[1]):
        before, row = rows[:, :index], rows[:, index]
        for _ in range(2):  # once is exact in exact arithmetic; twice is enough in floats
            row = row - np.einsum("cpd,cp->cd", before, np.einsum("cpd,cd->cp", before, row))
        rows[:, index] = _unit(row)
    return rows.astype(np.float32)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.sqrt(np.square(vectors).sum(-1, keepdims=True))


def _require_one_of(name: str, value: str, accepted: tuple[str, ...]) -> None:
    require(value in accepted, f"{name} is {value!r}; accepted are {', '.join(accepted)}")
