"""The runs of the study `variants`, tier by tier; the standard tier holds the quick one's."""

from collections.abc import Iterable
from dataclasses import replace

from headwise.lab.run import Run
from headwise.nets import PooledShape
from headwise.studies.variants import models
from headwise.tasks import Induction
from headwise.training import Streaming, Training

TRAINING = Training(steps=4_000, rate=1e-2, evaluations=10)
STREAMING = Streaming(steps=1_500, rate=0.01, batch=64, validation=1024, evaluations=5)
SEEDS = 8  # some are stuck in most settings, and then fewer decide nothing
FEW = 4  # where none was stuck
KERNEL = ("plain", "grouped:1", "window:16", "top-k:4")  # a head more at a time
STACKED = ("mixture", "gated", "differential", "linear")
SYMBOLS, TOKENS = 8, 12


def _variants(dim: int, names: Iterable[str], positions: int = 0) -> list[PooledShape]:
    """Around D active heads: two fewer to one more."""
    counts = range(max(1, dim - 2), dim + 2)
    nets = []
    for name in names:
        own = [count for count in counts if count >= 2 or name != "mixture"]
        nets += models.heads_of(name, own, positions)
    return nets


def _paired(dim: int) -> list[PooledShape]:
    """Two groups of keys, and two bands: heads come in pairs."""
    return models.heads_of("grouped:2", range(2, dim + 3, 2)) + _banded(dim)


def _banded(dim: int) -> list[PooledShape]:
    counts = range(max(2, 2 * dim - 4), 2 * dim + 3, 2)
    return models.heads_of(f"banded:{models.BANDS}", counts)


def _neighbours(seeds: int) -> list[Run]:
    dim = 8
    nets = [
        models.neighbour_decoder(name, dim, dim, rank)
        for name, rank in (("plain", 1), ("plain", dim), ("talking", 1), ("grouped:2", 1))
    ]
    return models.decoder_runs(models.nearest(dim), nets, STREAMING, seeds)


def _induction(names: Iterable[str], seeds: int) -> list[Run]:
    task = Induction(length=TOKENS, symbols=SYMBOLS)
    nets = [models.induction_decoder(name, task, layers) for name in names for layers in (1, 2)]
    return models.decoder_runs(task, nets, STREAMING, seeds)


def quick_parts() -> dict[str, list[Run]]:
    """What the kernel has, at D = 4 and T = 32, other D and lengths; rank; plain induction.

    Variants that run stacked take a hundred times as long; they are tested by the standard tier.
    """
    nets = [*_variants(4, KERNEL), *_paired(4)]
    nets += [*models.sets("max", (3, 4, 5)), *models.sets("mean", (4,))]
    runs = models.pooled_runs(models.retrieval(32, 4), nets, TRAINING, SEEDS)
    for dim in (2, 6):
        nets = _variants(dim, ("plain", "top-k:4"))
        runs += models.pooled_runs(models.retrieval(32, dim), nets, TRAINING, SEEDS)
    lengths: list[Run] = []
    for length in (16, 64):
        nets = [*_variants(4, ("plain",)), *_banded(4)]
        lengths += models.pooled_runs(models.retrieval(length, 4), nets, TRAINING, SEEDS)
    return {
        "heads": runs,
        "lengths": lengths,
        "rank": _neighbours(FEW),
        "induction": _induction(("plain",), FEW),
    }


def standard_parts() -> dict[str, list[Run]]:
    """Every model on D = 4, those of the kernel on 2 and 6; lengths; parts; variants in depth."""
    whole: list[Run] = []
    for dim in (2, 4, 6):
        around = (dim - 1, dim, dim + 1)
        nets = [*_variants(dim, KERNEL), *_paired(dim), *models.heads_of("talking", around)]
        nets += [*models.sets("max", around), *models.sets("mean", (dim, 8 * dim))]
        if dim == 4:
            nets += [net for name in STACKED for net in models.heads_of(name, around)]
            nets += [*models.recurrences((2, 4, 8)), *models.state_spaces((2, 4, 8))]
            nets += models.convolutions((2, 4, 8), 32)
        whole += models.pooled_runs(models.retrieval(32, dim), nets, TRAINING, SEEDS)
    lengths: list[Run] = []
    for length in (8, 16, 64, 128):
        nets = [*_variants(4, ("plain", "top-k:4")), *_banded(4)]
        nets += models.recurrences((4, 8)) if length in (8, 64) else []
        lengths += models.pooled_runs(models.retrieval(length, 4), nets, TRAINING, SEEDS)
    placed = [
        net
        for name in ("plain", "talking", "gated", "differential")
        for net in models.heads_of(name, (3, 4, 5), positions=32)
    ]
    placed += models.heads_of(f"banded:{models.BANDS}", (4, 6, 8), positions=32)
    parts = models.retrieval(32, 4, parts=True)
    every = ("plain", "grouped:1", "talking", "banded:2", "window:4", "top-k:2", "gated")
    return {
        "heads": whole,
        "lengths": lengths,
        "positions": models.pooled_runs(parts, placed, TRAINING, SEEDS),
        "rank": _neighbours(FEW),
        "induction": _induction((*every, "mixture:1:1", "differential", "linear"), FEW),
    }


def full_parts() -> dict[str, list[Run]]:
    """The standard tier's settings, trained four times as long, with sixteen seeds."""
    parts: dict[str, list[Run]] = {}
    for name, runs in standard_parts().items():
        parts[name] = []
        for run in runs:
            assert isinstance(run.training, Training | Streaming)
            longer = replace(run.training, steps=4 * run.training.steps)
            if run.seed == 0:
                parts[name] += [replace(run, training=longer, seed=seed) for seed in range(16)]
    return parts
