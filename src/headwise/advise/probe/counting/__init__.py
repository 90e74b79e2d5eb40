"""Counting the tokens that influence a function."""
