"""How fast class-token networks train: headwise's engines against the loop a user would write.

    python benchmarks/speed/kernel.py            all tables, about five minutes
    python benchmarks/speed/kernel.py --quick    fewer rounds and cases

Everything runs in one process with one thread (the last table: two processes with one each), in
rounds that visit every contender in turn; a figure is the median over rounds. Times are the
process's own CPU time, which on an idle machine is the time that passes and on a busy one still
compares fairly; the worker processes are timed by the clock. The plain loop is
`torch.nn.MultiheadAttention` over all T + 1 tokens with `need_weights=False`, fused Adam, and
batches already in memory. The share of the peak counts the FLOPs of the folded algebra only:
what an engine computes twice, or computes because it does not fold, does not count.
"""

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from itertools import product

import numba
import numpy as np
import torch
from torch import nn

from headwise.core.compiled.host import LANES
from headwise.core.compiled.simd import add, fma, load, splat, store
from headwise.nets import ClassTokenShape
from headwise.training import Training, keep_freed_memory
from headwise.training.fused.engine import FusedEngine
from headwise.training.samples.engine import Dataset, Engine
from headwise.training.samples.stacked import StackedEngine
from plain import PlainNet

TOKEN_DIM, HEAD_DIM, WIDTH = 4, 8, 32
SEQUENCES = 2000
STACKED_MEMBERS = 8
HALF = np.float32(0.5)

Contender = Callable[[int], int]  # runs about so many steps and returns how many model-steps


def plain(heads: int, length: int, batch: int) -> Contender:
    net = PlainNet(TOKEN_DIM, WIDTH, heads, HEAD_DIM)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, fused=True)
    batches = torch.randn(8, batch, length, TOKEN_DIM), torch.randn(8, batch)

    def steps(count: int) -> int:
        for step in range(count):
            outputs = net(batches[0][step % 8])
            loss = nn.functional.mse_loss(outputs, batches[1][step % 8])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return count

    return steps


def steps_of(engine: Engine, members: int, length: int, batch: int) -> Contender:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((SEQUENCES, length, TOKEN_DIM), np.float32)
    targets = rng.standard_normal((SEQUENCES, 1), np.float32)
    data = Dataset(torch.from_numpy(inputs), torch.from_numpy(targets))

    def steps(count: int) -> int:
        order = rng.integers(0, SEQUENCES, (members, count, batch))
        engine.advance(data, order, np.full(count, 1e-3))
        return members * count

    return steps


def fused(heads: int, length: int, batch: int) -> Contender:
    shape = ClassTokenShape.standard(token_dim=TOKEN_DIM, heads=heads, head_dim=HEAD_DIM)
    training = Training(steps=1, rate=1e-3, batch=batch)
    engine = FusedEngine(shape, training, [shape.initial_params(0)])
    return steps_of(engine, 1, length, batch)


def stacked(heads: int, length: int, batch: int) -> Contender:
    shape = ClassTokenShape.standard(token_dim=TOKEN_DIM, heads=heads, head_dim=HEAD_DIM)
    training, seeds = Training(steps=1, rate=1e-3, batch=batch), range(STACKED_MEMBERS)
    engine = StackedEngine(shape, training, [shape.initial_params(s) for s in seeds], seeds)
    return steps_of(engine, STACKED_MEMBERS, length, batch)


def folded_flops(heads: int, length: int, batch: int) -> int:
    """Of one step. A token's hidden unit: embedding and its gradient (2·token_dim), and a head's
    score, pooling and four products backward. A sequence: value map and (folded) readout, thrice.
    """
    token = (2 * TOKEN_DIM + 6 * heads) * WIDTH
    sequence = 3 * (heads * HEAD_DIM * WIDTH + heads * HEAD_DIM * WIDTH + WIDTH)
    return 2 * batch * (length * token + sequence)


@numba.njit(nogil=True)
def _multiply_add(memory: np.ndarray, count: int) -> None:
    """Ten chains of fused multiply-adds on registers: nothing can be faster."""
    half = splat(HALF)
    a, b, c, d, e = half, half, half, half, half
    f, g, h, i, j = half, half, half, half, half
    for at in range(0, 10 * LANES, LANES):  # different values, or the compiler merges the chains
        f = add(f, load(memory, at))
        a, b, c, d, e, f, g, h, i, j = b, c, d, e, f, g, h, i, j, a
    for _ in range(count):
        a, b, c = fma(a, half, half), fma(b, half, half), fma(c, half, half)
        d, e, f = fma(d, half, half), fma(e, half, half), fma(f, half, half)
        g, h, i = fma(g, half, half), fma(h, half, half), fma(i, half, half)
        j = fma(j, half, half)
    for value in (a, b, c, d, e, f, g, h, i, j):
        store(memory, 0, add(value, load(memory, 0)))


def peak(count: int) -> int:
    _multiply_add(np.ones(10 * LANES, np.float32), 100_000 * count)
    return 100_000 * count * 10 * LANES * 2


def rates(made: dict[str, Contender], rounds: int, seconds: float) -> dict[str, float]:
    """Model-steps a second: the median over interleaved rounds of about `seconds` each."""
    counts, seen = {}, {name: [] for name in made}
    for name, steps in made.items():
        steps(1)
        begin, count = time.process_time(), 0
        while time.process_time() - begin < seconds / 4:
            steps(1)
            count += 1
        counts[name] = max(1, count * 4)
    for _ in range(rounds):
        for name, steps in made.items():
            begin = time.process_time()
            done = steps(counts[name])
            seen[name].append(done / (time.process_time() - begin))
    return {name: statistics.median(values) for name, values in seen.items()}


def compare(
    name: str, contender: Callable[..., Contender], cases: list[tuple[int, int, int]], rounds: int
) -> None:
    print(
        f"{'length':>6} {'batch':>5} {'heads':>5}  {'engine':8} {'steps/s':>9} {'ratio':>7} of peak"
    )
    for length, batch, heads in cases:
        case = (heads, length, batch)
        made = {"plain": plain(*case), name: contender(*case), "peak": peak}
        found = rates(made, rounds, 0.3)
        top = found.pop("peak")
        for engine, rate in found.items():
            share = rate * folded_flops(heads, length, batch) / top
            print(
                f"{length:6} {batch:5} {heads:5}  {engine:8} {rate:9.1f} "
                f"{rate / found['plain']:6.1f}×  {share:6.1%}"
            )
    print(f"one thread; peak {top / 1e9:.0f} GFLOP/s measured; vectors of {LANES} floats\n")


def linearity(rounds: int) -> None:
    """Time of a step against the length, h = 4, batch 32."""
    lengths = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    made = {str(length): fused(4, length, 32) for length in lengths}
    found = rates(made, rounds, 0.1)
    times = np.array([1e6 / found[str(length)] for length in lengths])
    design = np.stack([np.ones(len(lengths)), np.array(lengths)], 1)
    weight = 1 / times[:, None]  # relative residuals
    (fixed, each), *_ = np.linalg.lstsq(design * weight, np.ones(len(lengths)), rcond=None)
    print("length     step (µs)  fit (µs)  deviation")
    for length, taken in zip(lengths, times, strict=True):
        fit = fixed + each * length
        print(f"{length:6} {taken:13.1f} {fit:9.1f} {taken / fit - 1:+10.1%}")
    print(f"fit: {fixed:.1f} µs + {each:.3f} µs a token of each sequence (heads 4, batch 32)\n")


def _work(ready: "multiprocessing.synchronize.Barrier", seconds: float) -> float:
    torch.set_num_threads(1)
    steps = fused(4, 32, 32)
    steps(10)
    ready.wait()
    begin, done = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        done += steps(200)
    return done / (time.perf_counter() - begin)


def workers(rounds: int) -> None:
    """Two processes against one, alternating."""
    context, seen = multiprocessing.get_context("spawn"), {1: [], 2: []}
    with context.Manager() as manager, context.Pool(2) as pool:
        for _, count in product(range(rounds), (1, 2)):
            barrier = manager.Barrier(count)
            found = pool.starmap(_work, [(barrier, 1.0)] * count, chunksize=1)
            seen[count].append(sum(found))
    one, two = (statistics.median(seen[count]) for count in (1, 2))
    print("worker processes, heads 4, length 32, batch 32, one thread each")
    print(f"one {one:.0f} steps/s, two {two:.0f} steps/s: {two / one:.2f}×")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds and cases")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    heads = (4,) if quick else (1, 4, 8)
    rounds = 3 if quick else 9
    compare("fused", fused, list(product((32, 128), (256, 32), heads)), rounds)
    keep_freed_memory()  # as headwise's workers do; from here on the plain loop has it too
    compare("stacked", stacked, list(product((32, 128), (256, 32), (4,))), rounds)
    linearity(rounds=5 if quick else 15)
    workers(rounds=3 if quick else 7)


if __name__ == "__main__":
    main()
