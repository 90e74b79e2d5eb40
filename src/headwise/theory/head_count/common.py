"""What the results on head count share: the paper, its assumptions, the sizes it speaks of."""

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

APPROXIMABLE = (
    "f_i and F_0 are approximated within δ by two-layer networks of width C/δ^γ (assumption 3)."
)
RELAXED = (
    "Weights may not grow with the accuracy: with weight norms of the order of length^(1/error) "
    "the "
    "paper's relaxation lets C/error^(γ+1) parameters do with any number of heads."
)


def feature_sizes(intrinsic_dim: int, length: int, name: str = "intrinsic_dim") -> tuple[int, int]:
    """Both as checked ints; one token may attain the minimum of several features."""
    return whole(name, intrinsic_dim), whole("length", length)
