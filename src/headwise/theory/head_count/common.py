"""What the results on head count share: the paper, its assumptions, the sizes it speaks of."""

from headwise.core.errors import require
from headwise.theory.checks import whole

PAPER = "head count paper (arXiv 2510.06662)"
REGULAR = (
    "Each f_i is twice differentiable with one global minimiser, distinct from the others', and a "
    "positive definite Hessian there; no partial derivative of F_0 vanishes (assumption 2)."
)
BOUNDED = (
    "The encoder's norm is at most 1, the readout's activation is 1-Lipschitz, and the entries of "
    "the readout and the attention matrices are at most 1 in size (assumption 1)."
)


def feature_sizes(intrinsic_dim: int, length: int, name: str = "intrinsic_dim") -> tuple[int, int]:
    """Both as checked ints: a sequence cannot hold more distinct minimisers than tokens."""
    intrinsic_dim, length = whole(name, intrinsic_dim), whole("length", length)
    require(
        intrinsic_dim <= length,
        f"{name} must be at most the length {length:,}, not {intrinsic_dim:,}: a sequence has one "
        "token for each feature's minimum",
    )
    return intrinsic_dim, length
