"""Short descents, for what does not depend on how well networks learn."""

import pytest

from headwise.advise.probe.descent import transition


def shorten(monkeypatch: pytest.MonkeyPatch, **steps: int) -> None:
    """Let a descent take these numbers of steps, and no further seeds."""
    for name, count in steps.items():
        monkeypatch.setattr(transition, name, count)
    monkeypatch.setattr(transition, "MORE_SEEDS", ())
