"""Bounds and exact curves. numpy and scipy only: importing this never imports torch."""

from headwise.theory import allocation, head_count, rank, saturation
from headwise.theory.bound import Bound, Status, Verdict

__all__ = ["Bound", "Status", "Verdict", "allocation", "head_count", "rank", "saturation"]
