"""Short descents, for what does not depend on how well networks learn."""

import pytest

from headwise.advise.probe.descent import screening, search


def shorten(monkeypatch: pytest.MonkeyPatch, **steps: int) -> None:
    """Let a descent take these numbers of steps, and no further seeds."""
    for name, count in steps.items():
        module = screening if name.startswith("SCREENING") else search
        monkeypatch.setattr(module, name, count)
    monkeypatch.setattr(search, "MORE_SEEDS", ())
