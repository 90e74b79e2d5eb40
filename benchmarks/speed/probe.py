"""The probe against a grid search over heads with the plain loop that comes to the same decision.

    python benchmarks/speed/probe.py [--length 32] [--intrinsic-dim 4] [--jobs 2]

The grid trains h = 1, 2, … D + 2 from scratch, three seeds each (fewer mistake a stuck seed for a
missing head), and takes the smallest h after which the error no longer halves. How many steps it
needs to decide rightly is found by training that very grid with headwise's engine, which follows
the same trajectory; its price is those steps at the measured rate of the plain loop. Both prices
are CPU seconds, so that other work on the machine does not count.
"""

import argparse
import time

import torch

import headwise
from headwise.nets import ClassTokenShape
from headwise.tasks import sum_of_maxima
from headwise.training import Training, fused, keep_freed_memory, train
from plain import plain_rate

SEEDS, FLOOR, HALVES = 3, 1e-4, 2.0


def grid_decision(errors: dict[int, float]) -> int | None:
    """The smallest h after which neither one nor two more heads halve the error."""
    for heads in sorted(errors)[:-1]:
        later = [max(errors[h], FLOOR) for h in (heads + 1, heads + 2) if h in errors]
        if max(errors[heads], FLOOR) / min(later) <= HALVES:
            return heads
    return None


def cpu_rate(length: int, heads: int) -> float:
    """Steps of the plain loop for a second of CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    rate = plain_rate(length, 32, heads, 2.0)
    return rate * (time.perf_counter() - wall) / (time.process_time() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--intrinsic-dim", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    assert fused.available() is None, fused.available()
    task = sum_of_maxima(options.length, options.intrinsic_dim)
    inputs, targets = task.sample(20_000, seed=11)

    wall, cpu = time.perf_counter(), time.process_time()
    finding = headwise.probe(inputs, targets, jobs=options.jobs, seconds=3600)
    probe_wall, probe_cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(finding, "\n")

    heads = range(1, options.intrinsic_dim + 3)
    rates = {h: cpu_rate(options.length, h) for h in heads}
    for steps in (2000, 4000, 8000, 16000, 32000):
        training = Training(steps=steps, rate=1e-2, samples=18_000, evaluations=4)
        errors = {}
        for h in heads:
            shape = ClassTokenShape.standard(token_dim=4, heads=h)
            outcomes = train(task, shape, training, range(SEEDS))
            errors[h] = min(outcome.error or 1.0 for outcome in outcomes)
        decision = grid_decision(errors)
        grid = sum(SEEDS * steps / rates[h] for h in heads)
        shown = ", ".join(f"{h}: {error:.1e}" for h, error in errors.items())
        print(f"grid, {steps} steps: {decision} heads ({shown}); plain loop {grid:.0f} CPU s")
        if decision == options.intrinsic_dim:
            break
    print(f"\nprobe                      {probe_cpu:8.1f} CPU s, {probe_wall:.1f} s on the clock")
    print(f"grid search, plain loop    {grid:8.1f} CPU s")
    print(f"ratio                      {grid / probe_cpu:8.1f} ×   (bar: 10 ×)")


if __name__ == "__main__":
    main()
