"""The rank paper's own lower bounds (arXiv 2407.16153): rates, whose constants we do not know."""

import math

from headwise.core.errors import require
from headwise.theory.bound import Bound, BoundVerdict, Status
from headwise.theory.checks import positive, whole

_PAPER = "rank paper (arXiv 2407.16153)"


def published_rates(dim: int, rank: int, error: float) -> tuple[Bound, Bound, Bound]:
    """Theorem 2 at constant error and at high accuracy, and theorem 3; the shapes, not the numbers.

    Each value is an exponent: heads grow like e^value, up to constants that are unknown. One rank
    below full none of them is given: there dim + 1 heads are enough (even dim), which no rate that
    grows faster can be true of.
    """
    dim, rank = whole("dim", dim), whole("rank", rank)
    error = positive("error", error)
    require(rank <= dim, f"rank must be at most dim = {dim}, not {rank}: a head cannot see more")
    log_ratio = math.log(dim / rank)
    return (
        _rate("(dim/rank)^(1/error)", log_ratio / error, dim, rank, "theorem 2, constant error"),
        _rate(
            "exp(dim − rank·log(dim/rank))",
            dim - rank * log_ratio,
            dim,
            rank,
            "theorem 2, high accuracy",
        ),
        _rate(
            "exp(dim − rank)/(dim·max‖V‖²), biased targets",
            float(dim - rank),
            dim,
            rank,
            "theorem 3",
        ),
    )


def _rate(formula: str, exponent: float, dim: int, rank: int, theorem: str) -> Bound:
    applies = dim >= 5 and rank < dim - 1
    if rank == dim - 1 and dim >= 5:
        statement = (
            f"At rank {rank} of {dim} the shape of the theorem as we know it says nothing: dim + 1 "
            "heads of rank dim − 1 are exact in even dimensions (exact_below_full_rank), so the "
            "rate is one for ranks well below full."
        )
    elif applies:
        statement = (
            f"Heads of rank {rank} in dimension {dim} must number at least of the order of "
            f"{formula}; the exponent is {exponent:.4g}, its constants are unknown."
        )
    else:
        statement = f"The theorem is about rank < dim and dim ≥ 5, not rank {rank} and dim {dim}."
    return Bound(
        quantity=f"exponent of the rate heads = Ω({formula})",
        value=exponent if applies else None,
        verdict=BoundVerdict.RATE if applies else BoundVerdict.NOT_APPLICABLE,
        statement=statement,
        source=f"{_PAPER}, {theorem}",
        status=Status.PROVED,
        assumptions=("Two points.", "Constants are unknown: compare growth, not numbers."),
    )
