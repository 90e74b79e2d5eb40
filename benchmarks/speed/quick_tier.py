"""The whole quick tier of head-count against the plain loop doing the same grid; where time goes.

    python benchmarks/speed/quick_tier.py

The tier is run for real, in this process, one thread. The plain loop's time is extrapolated from
its measured step rate at every (heads, length) of the grid, measured between the runs.
"""

import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from headwise.core.progress import quiet
from headwise.lab.store import Store
from headwise.lab.work import jobs, perform
from headwise.studies.head_count.synthetic import quick_parts
from headwise.training import fused, keep_freed_memory
from headwise.training.fused.engine import FusedEngine
from headwise.training.samples import data
from plain import plain_rate


def timed(spent: dict[str, float], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            spent[name] += time.perf_counter() - started

    return wrapper


def memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    started = time.perf_counter()
    assert fused.available() is None, fused.available()
    print(f"compile or load the kernel: {time.perf_counter() - started:.1f} s")

    spent: dict[str, float] = defaultdict(float)
    FusedEngine.advance = timed(spent, "training steps", FusedEngine.advance)  # type: ignore
    FusedEngine.predict = timed(spent, "evaluation", FusedEngine.predict)  # type: ignore
    data.load = timed(spent, "data", data.load)  # type: ignore
    data.epoch_order = timed(spent, "batch order", data.epoch_order)  # type: ignore

    plain_seconds, headwise_seconds, memory = 0.0, 0.0, []
    rates: dict[tuple[int, int], float] = {}
    todo = jobs(quick_parts()["transition"])
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder, "a.db"), write=True) as store:
        store_add = timed(spent, "store", store.add)
        for job in todo:
            run = job[0]
            setting = (run.net.layers[0].heads, run.task.length)
            if setting not in rates:
                rates[setting] = plain_rate(run.task.length, run.training.batch, setting[0], 2.0)
            plain_seconds += len(job) * run.training.steps / rates[setting]
            started = time.perf_counter()
            store_add(perform(job, quiet))
            headwise_seconds += time.perf_counter() - started
            memory.append(memory_mb())

    spent["everything else"] = headwise_seconds - sum(spent.values())
    print(f"\n{len(todo)} runs, {sum(r.training.steps for j in todo for r in j):,} steps")
    print(f"plain loop, extrapolated   {plain_seconds:10.0f} s")
    print(f"headwise, measured         {headwise_seconds:10.0f} s")
    print(f"ratio                      {plain_seconds / headwise_seconds:10.1f} ×   (bar: 30 ×)")
    print("\nwhere headwise's time goes")
    for name, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"  {name:18s} {seconds:8.1f} s  {seconds / headwise_seconds:6.1%}")
    quarter = len(memory) // 4
    print(
        f"\nmemory after a quarter of the runs {memory[quarter]:.0f} MB, after all "
        f"{memory[-1]:.0f} MB, peak {max(memory):.0f} MB"
    )


if __name__ == "__main__":
    main()
