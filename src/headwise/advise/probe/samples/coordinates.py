"""What a network sees of a token beside its position: coordinates, squares and products.

Squares where tokens are small and products of any two where they are few: a bowl is then a sum and
a covariance a mean, not an approximation by ReLUs, and the error floor that hides the transition
falls.
"""

import numpy as np
from jaxtyping import Bool, Float

SQUARED_UP_TO, MULTIPLIED_UP_TO = 16, 4  # token coordinates


def coordinates(
    tokens: Float[np.ndarray, "samples length token_dim"],
    mask: Bool[np.ndarray, "samples length"] | None,
) -> Float[np.ndarray, "samples length coordinates"]:
    """Every coordinate in standard units over the tokens that are real."""
    plain = _standard(tokens, mask)
    parts, width = [plain], tokens.shape[2]
    if width <= SQUARED_UP_TO:
        parts.append(_standard(plain**2, mask))
    if 2 <= width <= MULTIPLIED_UP_TO:
        first, second = np.triu_indices(width, 1)
        parts.append(_standard(plain[..., first] * plain[..., second], mask))
    return np.concatenate(parts, 2)


def _standard(tokens: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Mean 0 and deviation 1 over the real tokens; a coordinate that is constant becomes 0.

    Moments are taken in double precision, the tokens stay in single.
    """
    rows = tokens.reshape(-1, tokens.shape[2]) if mask is None else tokens[mask]
    mean, spread = rows.mean(0, dtype=np.float64), rows.std(0, dtype=np.float64)
    unit = np.where(spread > 1e-12 * np.abs(rows).max(0), spread, 1.0)
    return (tokens - mean.astype(tokens.dtype)) / unit.astype(tokens.dtype)
