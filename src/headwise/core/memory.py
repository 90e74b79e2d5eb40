"""How much memory a process may still take, asked before work that would end without a sentence.

Under a limit of its addresses (`ulimit -v`, as on many clusters) a process can fail to get memory
that the machine has. torch, tokenizers and the engine that draws figures then end it from within.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from math import inf
from pathlib import Path
from types import ModuleType

from headwise.core.errors import WorkLost

TO_DRAW = 66 * 2**30  # the engine reserves 64 GiB of addresses; it fills a few hundred megabytes
TO_TRAIN = 2**29  # threads and the compiler, beside what is loaded by then
TO_OPEN = 3 * 2**28  # the tokenizer's and transformers' own; the weights come on top
_TO_LOAD = {  # for what a library and its own libraries ask for while they are imported
    "scipy": 2**28,
    "numba": 2**28,
    "pandas": 2**29,  # with pyarrow
    "torch": 3 * 2**28,
}
_UNKNOWN = 2**29  # where the system does not say what is free


def free_bytes() -> float:
    """Memory that this process could take now: what the machine has free, and a limit allows."""
    return min(_available(), room())


def room() -> float:
    """Addresses that this process may still take, in bytes; without a limit, infinite."""
    if sys.platform != "linux":
        return inf
    import resource  # there is none on other systems

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return inf
    return limit - resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])


def check_room(needed: float, what: str) -> None:
    """Refuse work that would need more addresses than the process may have; `what` names it."""
    if room() < needed:
        raise WorkLost(
            f"{what} needs {needed / 2**30:.1f} GiB of address space, and the limit here leaves "
            f"{max(room(), 0) / 2**30:.1f} GiB; raise it (ulimit -v unlimited)"
        )


def check_can_draw(wanted: object = True) -> None:
    """Refuse to draw where the engine that draws would end the process. None: nothing is drawn."""
    if wanted is not None:
        check_room(TO_DRAW, "drawing figures")


def guard_imports() -> None:
    """Where addresses are limited, ask before a large library is loaded, whoever imports it.

    Without them some abort while they are loaded, and OpenBLAS tries again for ever.
    """
    if room() < inf and not any(isinstance(each, _Guard) for each in sys.meta_path):
        sys.meta_path.insert(0, _Guard())


class _Guard(MetaPathFinder):
    """Finds nothing: it is asked first, and refuses."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name in _TO_LOAD:
            check_room(_TO_LOAD[name], f"loading {name}, which this command uses,")


def _available() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return _UNKNOWN
    free = (1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return next(free, _UNKNOWN)
