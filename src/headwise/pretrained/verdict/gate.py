"""The quality gate: is the damage within what is allowed, is it above, or can that not be told?

The damage was found on some documents; other ones, as many and of the same kind, would give another
number within its interval. So the whole interval has to be within the loss that is allowed.
"""

from math import ceil
from typing import Literal

from headwise.pretrained._evaluate import TextVerdict

Answer = Literal["within", "above", "not told"]

_MORE_TEXT = 100  # times as much: more is not advised


def answer(verdict: TextVerdict, allowed: float) -> Answer:
    """By the 95 % interval; a single document has none, and tells nothing.

    Damage is never negative, so any at all is above a loss of 0.
    """
    if verdict.low is None or verdict.high is None:
        return "not told"
    if verdict.high <= allowed:
        return "within"
    return "above" if verdict.low > allowed or allowed == 0 else "not told"


def gate_sentence(verdict: TextVerdict, allowed: float) -> str:
    """The damage, its interval, the gate, what follows and what would settle it."""
    found, said = answer(verdict, allowed), f"{verdict.damage:.4g}"
    if verdict.low is not None and verdict.high is not None:
        said += f" [{verdict.low:.4g}, {verdict.high:.4g}]"
    if found == "within":
        return f"quality gate: damage {said} is within {allowed:g}, its whole interval"
    if found == "above":
        return f"quality gate: damage {said} is ABOVE {allowed:g}; nothing is written"
    return (
        f"quality gate: whether damage {said} is within {allowed:g} CANNOT BE TOLD; nothing is "
        f"written. {_what_would_tell(verdict, allowed)} (tokens, eval_text), or keep more"
    )


def _what_would_tell(verdict: TextVerdict, allowed: float) -> str:
    """An interval becomes shorter with the root of the number of documents."""
    if verdict.low is None or verdict.high is None:
        return "One document has no interval: give more held-out text"
    distance = abs(verdict.damage - allowed)
    reach = verdict.high - verdict.damage
    if verdict.damage > allowed:
        reach = verdict.damage - verdict.low
    times = (reach / distance) ** 2 if distance > 0 else _MORE_TEXT + 1.0
    if times > _MORE_TEXT:
        return "They are too close for any sensible amount of held-out text"
    return f"About {max(2, ceil(times))} times as much held-out text would tell"
