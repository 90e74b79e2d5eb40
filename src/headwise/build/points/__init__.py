"""Constructions for the nearer of two points, from the theorems on rank."""
