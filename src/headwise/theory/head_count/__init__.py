"""Head count: how many heads a retrieval target needs (arXiv 2510.06662).

A generalised retrieval target on x(1)..x(length) extracts `intrinsic_dim` features
z_i = min over t in S_i of f_i(x(t)) and returns F_0(z_1, ..., z_D). The networks are one attention
layer read at a class token: heads × head_dim wide, an encoder before it, a readout after it.
`params` counts the weights of encoder and readout; `error` is the sup norm over all inputs.
"""

from headwise.theory.head_count.enough import (
    heads_needed,
    intrinsic_dim_is_unique,
    layers_condition,
    parameters_sufficient,
)
from headwise.theory.head_count.grid import PhaseMap, phase_map
from headwise.theory.head_count.reversal import reversal_score
from headwise.theory.head_count.softmax import softmax_leakage, softmax_min_error
from headwise.theory.head_count.too_few import lower_bound_exponent

__all__ = [
    "PhaseMap",
    "heads_needed",
    "intrinsic_dim_is_unique",
    "layers_condition",
    "lower_bound_exponent",
    "parameters_sufficient",
    "phase_map",
    "reversal_score",
    "softmax_leakage",
    "softmax_min_error",
]
