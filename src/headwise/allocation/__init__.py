"""Heads and dimensions by layer as data: schedules, filling a budget, cutting, the plan file."""
