"""Which heads and dimensions in which layer? The theory's default, or a race on the user's data."""

from headwise.advise.plan.ask import plan

__all__ = ["plan"]
