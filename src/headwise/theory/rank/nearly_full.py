"""One rank below full: where many heads do make up for rank, exactly.

**Theorem (derived).** Two orthogonal points x_1, x_2 on the sphere and a query y; dim even. There
are dim + 1 heads of rank dim − 1, Σ_h M_h X φ_h(W_h X, y) with M_h ∝ I, whose sum is the nearer
point.

**Proof.** With w = (x_1 − x_2)/√2 and s = (x_1 + x_2)/√2 the answer is (s + f w)/√2, f = sgn⟨w, y⟩.
Let R_i change the sign of w's coordinate i (y stays), and split f by its parity in one coordinate
after the other: f = Σ_i g_i + p,

    g_i = Π_{j<i} (1 − R_j)/2 · (1 + R_i)/2 f,    p = Π_j (1 − R_j)/2 f.

p is odd in every coordinate, so p(−w) = (−1)^dim p(w); f is odd, so p(−w) = −p(w). For even dim
p = 0. g_i is even in w_i: it depends on |w_i|, and |w_i| is known from the other coordinates
because w has length one. So a head that does not see coordinate i of the points can compute g_i. It
is an average of signs, hence in [−1, 1], and the weights (1 ± g_i)/2 are a distribution: head i
returns (s + g_i w)/√2. The dim heads together return (dim·s + f w)/√2; one more with equal weights
and value −(dim − 1)·I takes the surplus away. ∎

For odd dim p remains: the sum of the same heads errs by E p²/2 (.022 at 3, .0027 at 5).
"""

from headwise.theory.bound import Bound, BoundVerdict, Status
from headwise.theory.checks import whole


def exact_below_full_rank(dim: int) -> Bound:
    """How many heads of rank dim − 1 find the nearer of two orthogonal points exactly."""
    dim = whole("dim", dim, least=2)
    even = dim % 2 == 0
    return Bound(
        quantity=f"heads of rank {dim - 1} that are exact",
        value=dim + 1 if even else None,
        verdict=BoundVerdict.HOLDS if even else BoundVerdict.NOT_APPLICABLE,
        statement=(
            f"{dim + 1} heads of rank {dim - 1} in dimension {dim} find the nearer of two "
            "orthogonal "
            "points exactly: one below full rank, many heads make up for it."
            if even
            else f"The construction needs an even dimension; at {dim} what is odd in every "
            "coordinate remains."
        ),
        source="parity by coordinates, proof in headwise.theory.rank.nearly_full",
        status=Status.DERIVED,
        assumptions=(
            "Two orthogonal points of length one, and any query.",
            "A head's weights may be any function of what it sees, not only a softmax of a "
            "product.",
        ),
    )
