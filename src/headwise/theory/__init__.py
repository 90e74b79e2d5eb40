"""Bounds and exact curves. numpy and scipy only: importing this never imports torch."""

from headwise.theory import head_count, rank
from headwise.theory.bound import Bound, Status, Verdict

__all__ = ["Bound", "Status", "Verdict", "head_count", "rank"]
