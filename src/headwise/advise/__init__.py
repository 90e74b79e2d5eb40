"""Advice: how many heads a task needs."""
