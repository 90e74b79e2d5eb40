"""The same task at another length."""

from dataclasses import replace

from headwise.core.errors import require
from headwise.nets import ClassTokenShape
from headwise.tasks.retrieval import Retrieval
from headwise.theory.checks import whole


def of_length(task: Retrieval, length: int, shape: ClassTokenShape) -> Retrieval:
    """The task on `length` tokens; subsets keep the positions that are left."""
    length = whole("length", length)
    require(
        not shape.positions or length <= shape.positions,
        f"the network knows {shape.positions} positions; build it for length {length}",
    )
    subsets = tuple(tuple(t for t in subset if t < length) for subset in task.subsets)
    require(all(subsets), f"at length {length} a feature's subset would be empty")
    return replace(task, length=length, subsets=subsets)
