"""The fast path on a CPU: whole training steps compiled for this machine."""

from headwise.training.fused.scope import available, covers

__all__ = ["available", "covers"]
