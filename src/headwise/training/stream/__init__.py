"""Feeding sequences that never repeat: `Streaming`, for networks that answer token by token."""
