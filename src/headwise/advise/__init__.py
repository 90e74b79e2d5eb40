"""Advice: how many heads a task needs (`probe`), and where to put them (`plan`)."""
