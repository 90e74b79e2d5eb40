"""Short descents, for what does not depend on how well networks learn."""

import pytest

from headwise.advise.probe.descent import screening, transition


def shorten(monkeypatch: pytest.MonkeyPatch, **steps: int) -> None:
    """Let a descent take these numbers of steps, and no further seeds."""
    for name, count in steps.items():
        module = screening if name.startswith("SCREENING") else transition
        monkeypatch.setattr(module, name, count)
    monkeypatch.setattr(transition, "MORE_SEEDS", ())
