"""Feeding sequences held in memory: `Training`, for class-token networks."""
