"""What torch computes on: chosen once at the top, asked for where networks are made."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from headwise.core.errors import require

NAMES = ("auto", "cpu", "cuda", "mps")
_chosen = ["cpu"]  # the last is meant; of the whole process, for threads share it


def check_device_name(name: str) -> None:
    """Refuse what is no device's name."""
    kind, _, number = name.partition(":")
    known = name in NAMES or (kind == "cuda" and number.isdecimal())
    require(known, f"there is no device {name!r}; devices are {', '.join(NAMES)}")


def find_device(name: str) -> str:
    """The device of that name, if it is here; "auto" takes a GPU where there is one."""
    check_device_name(name)
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next((kind for kind, there in here.items() if there), "cpu")
    require(
        here.get(name.partition(":")[0], True),
        f"torch finds no {name} device here; take --device auto or cpu",
    )
    return name


def chosen_device() -> str:
    """What the work that is going on was told to compute on: the CPU unless it was."""
    return _chosen[-1]


@contextmanager
def computing_on(name: str) -> Iterator[str]:
    """Within this, `chosen_device` is the device of that name."""
    _chosen.append(find_device(name))
    try:
        yield _chosen[-1]
    finally:
        _chosen.pop()
