"""Heads and dimensions by layer as data: schedules, filling a budget, cutting, the plan file."""

from headwise.allocation.cut import Heads, check_can_be_cut, with_layer
from headwise.allocation.fill import Layers, attention_parameters, between, fitted
from headwise.allocation.plan_file import (
    AllocationPlan,
    Candidate,
    Comparison,
    read_allocation,
    write_allocation,
)
from headwise.allocation.schedules import SCHEDULES, Schedule, schedule, uniform_heads

__all__ = [
    "SCHEDULES",
    "AllocationPlan",
    "Candidate",
    "Comparison",
    "Heads",
    "Layers",
    "Schedule",
    "attention_parameters",
    "between",
    "check_can_be_cut",
    "fitted",
    "read_allocation",
    "schedule",
    "uniform_heads",
    "with_layer",
    "write_allocation",
]
