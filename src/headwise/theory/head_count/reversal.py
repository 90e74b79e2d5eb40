"""The reversal score: do longer sequences make a task harder or easier?"""

from collections.abc import Mapping

from headwise.core.errors import require
from headwise.theory.checks import number, shown, whole


def reversal_score(errors_by_length: Mapping[int, float]) -> float:
    """How often, and how far, longer sequences are easier: the sign that heads are enough.

    The sum of max(error(T1) − error(T2), 0) over T1 < T2, divided by the range of the errors; 0
    where the error only grows with the length.
    """
    require(
        isinstance(errors_by_length, Mapping) and len(errors_by_length) >= 2,
        "reversal_score needs a mapping from each of at least two lengths to its error, not "
        + shown(errors_by_length),
    )
    by_length = {
        whole("a length", length): number(f"the error at length {shown(length)}", error)
        for length, error in errors_by_length.items()
    }
    errors = [by_length[length] for length in sorted(by_length)]
    spread = max(errors) - min(errors)
    if spread == 0:
        return 0.0
    drops = (max(a - b, 0.0) for i, a in enumerate(errors) for b in errors[i + 1 :])
    return sum(drops) / spread
