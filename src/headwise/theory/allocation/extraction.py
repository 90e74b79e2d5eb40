"""What an early layer can extract: heads against their dimension, for linear targets of the past.

The target y(t) = Σ_lag K_lag x(t − lag) reads `lags` tokens through matrices K_lag; tokens are
white noise of unit variance. A head that attends by position returns Σ_lag p(lag)·x(t − lag), p a
distribution, and its value–output map W has rank ≤ head_dim; a layer of heads is the kernel
Σ_h p_h(lag) W_h.

**Theorem (derived).** The mean-square error of any layer of `heads` heads of dimension `head_dim`
is at least the larger of Σ_{k > heads} σ_k² for the lags × (out·in) unfolding of K, and
Σ_{k > heads·head_dim} τ_k² for its (lags·out) × in and (lags·in) × out unfoldings.

**Proof.** White noise makes the error ‖K − Σ_h p_h ⊗ W_h‖² (Frobenius). As a matrix of lags against
all else, the sum has rank ≤ heads; with the lags on the rows' side, ≤ Σ_h rank W_h. Eckart and
Young say what a matrix of a rank leaves. ∎

It is nearly attained: with head_dim as wide as W, the `heads` best patterns are reached by one head
more. A pattern v of any sign is a difference of distributions, v = c·(p − u) + (Σv)·u, for the
uniform u and a c that makes p = u + (v − (Σv) u)/c ≥ 0, so heads with patterns p_h and one uniform
head span it.

The allocation paper (arXiv 2510.03784) states a bound of its own for this trade-off; its constants
are not known to us, and this is not it.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from headwise.core.errors import InputError, require
from headwise.theory.bound import Bound, BoundVerdict, Status, rounded_down
from headwise.theory.checks import numbers, shown, whole
from headwise.theory.directed import down

_LARGEST = 1e140

Kernel = Float[np.ndarray, "lags out in"]


def extraction_bound(kernel: Kernel, heads: int, head_dim: int) -> Bound:
    """The least mean-square error of one layer at a linear target of the past tokens."""
    matrices = as_kernel(kernel)
    heads, head_dim = whole("heads", heads), whole("head_dim", head_dim)
    by_heads, by_width = unreached(spectra(matrices), heads, head_dim)
    total = float(np.square(matrices).sum())
    value = max(by_heads, by_width)
    # The singular values are known within a few units of the largest.
    value = down(max(0.0, value - 1e-12 * total))
    limit = "the number of heads" if by_heads >= by_width else "heads × dimension"
    many = f"{heads:,} head{'s' if heads > 1 else ''} of dimension {head_dim:,}"
    statement = (
        f"No layer of {many} has a mean-square error below {rounded_down(value)} of "
        f"{total:.4g}, at a target of {len(matrices)} lags; what limits it is {limit}."
        if value > 0
        else f"Nothing is forbidden: the ranks of the target's unfoldings are within {many}."
    )
    return Bound(
        quantity="least mean-square error of an extracting layer",
        side="lower",
        value=value if value > 0 else None,
        verdict=BoundVerdict.HOLDS if value > 0 else BoundVerdict.VACUOUS,
        statement=statement,
        source="rank of the kernel's unfoldings, proof in headwise.theory.allocation.extraction",
        status=Status.DERIVED,
        assumptions=(
            "Tokens are white noise of unit variance; the target is linear in the past tokens.",
            "Attention is by position: the same weights for every input.",
            "One layer whose output is the sum of its heads.",
        ),
    )


class Spectra(NamedTuple):
    """Squared singular values of a kernel's unfoldings: in time, as read, as written."""

    time: Float[np.ndarray, " time"]
    read: Float[np.ndarray, " read"]
    written: Float[np.ndarray, " written"]


def spectra(kernel: Kernel) -> Spectra:
    """With the lags, with the lags and outputs, and with the lags and inputs as rows."""
    lags, out, into = kernel.shape
    return Spectra(
        _squares(kernel.reshape(lags, out * into)),
        _squares(kernel.reshape(lags * out, into)),
        _squares(kernel.transpose(0, 2, 1).reshape(lags * into, out)),
    )


def unreached(found: Spectra, heads: int, head_dim: int) -> tuple[float, float]:
    """The energy that a number of heads leaves, and the energy that heads × head_dim leaves."""
    rank = heads * head_dim
    wide = max(float(found.read[rank:].sum()), float(found.written[rank:].sum()))
    return float(found.time[heads:].sum()), wide


def _squares(matrix: Float[np.ndarray, "rows columns"]) -> np.ndarray:
    return np.square(np.linalg.svd(matrix, compute_uv=False))


def as_kernel(kernel: Kernel) -> Kernel:
    """A kernel that can be squared and added up, or a sentence that says what it is not."""
    flat = numbers("kernel", kernel)
    shape = np.shape(kernel)
    require(
        len(shape) == 3 and len(flat) > 0,
        f"kernel is an array of lags × outputs × inputs, not {shown(kernel)}",
    )
    if len(flat) > 10**8:
        raise InputError(f"a kernel of {len(flat):,} numbers is too large; at most 100,000,000")
    require(
        float(np.abs(flat).max()) <= _LARGEST,
        f"the kernel's numbers are at most {_LARGEST:g} in size: their squares are added up",
    )
    return flat.reshape(shape)
