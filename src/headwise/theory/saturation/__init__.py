"""Saturation: softmax forgives changes of its scores, and how much (allocation, arXiv 2510.03784).

A row of scores over `length` keys changes by e, where a constant in e is free; `epsilon` is half
its spread, (max e − min e) / 2. The paper argues that heads can therefore be narrowed; the
inequalities here are our own, with their proofs, and hold for any scores.
"""

from headwise.theory.saturation.check import HeadCheck, check_head
from headwise.theory.saturation.inequalities import (
    VACUOUS,
    RowChanges,
    attention_shift,
    attention_shift_bound,
    output_shift,
    row_changes,
    row_distance,
    saturation_bound,
)

__all__ = [
    "VACUOUS",
    "HeadCheck",
    "RowChanges",
    "attention_shift",
    "attention_shift_bound",
    "check_head",
    "output_shift",
    "row_changes",
    "row_distance",
    "saturation_bound",
]
