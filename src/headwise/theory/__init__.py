"""Bounds and exact curves. numpy and scipy only: importing this never imports torch."""

from headwise.theory import allocation, head_count, rank, saturation
from headwise.theory.bound import Bound, BoundVerdict, Status

__all__ = ["Bound", "BoundVerdict", "Status", "allocation", "head_count", "rank", "saturation"]
