"""Feeding windows of a text: `TextTraining`, for decoders with a vocabulary."""
