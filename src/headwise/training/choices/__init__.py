"""Feeding a finite set of examples by epochs: `ChoiceTraining`, for networks that choose."""
