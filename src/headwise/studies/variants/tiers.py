"""The runs of the study `variants`, tier by tier; the standard tier holds the quick one's.

The recipes were settled by pilot runs of a few settings at D = 4. Small rates and many steps leave
fewer networks stuck with one feature twice: heads that the kernel has itself, at a millisecond for
ten steps, have both (linear ones aside); all others have fewer steps at a larger rate. Where a
quarter of the seeds or fewer get through (two groups; a maximum of D channels), there are three
times as many, and eight times where a tenth does: of 24 seeds of four multi-query heads 2 did,
which decided nothing. Eight seeds a setting, and two of a decoder on induction, left most claims of
the standard tier undecided, so it has sixteen of all that is retrieved and four of induction.
"""

from collections.abc import Iterable
from dataclasses import replace

from headwise.lab.run import Run
from headwise.nets import PooledShape
from headwise.studies.variants import models
from headwise.studies.variants.models import BANDS
from headwise.tasks import Induction
from headwise.training import Streaming, Training

PATIENT = Training(steps=16_000, rate=2e-3, evaluations=10)  # the kernel's
BRISK = Training(steps=4_000, rate=5e-3, evaluations=10)  # of what takes ten times as long
STREAMING = Streaming(steps=1_500, rate=0.01, batch=64, validation=1024, evaluations=5)
SEEDS, TWICE, FEW, MANY, CROWD = 8, 16, 4, 24, 64
SYMBOLS, TOKENS = 8, 12
BANDED = f"banded:{BANDS}"
TIED = ("talking", "mixture", "gated", "differential")


def _around(dim: int, step: int = 1) -> tuple[int, ...]:
    """One step below D, D, and one above."""
    return dim - step, dim, dim + step


def _pooled(length: int, dim: int, nets: Iterable[PooledShape], seeds: int = TWICE) -> list[Run]:
    return models.pooled_runs(models.retrieval(length, dim), nets, PATIENT, seeds)


def _brisk(length: int, dim: int, nets: Iterable[PooledShape], seeds: int = TWICE) -> list[Run]:
    return models.pooled_runs(models.retrieval(length, dim), nets, BRISK, seeds)


def _sharp(dim: int, seeds: int = TWICE) -> list[Run]:
    """Plain and top-k heads on features of 32 tokens."""
    nets = [net for name in ("plain", "top-k:4") for net in models.heads_of(name, _around(dim))]
    return _pooled(32, dim, nets, seeds)


def _banded(length: int, dim: int, seeds: int = TWICE) -> list[Run]:
    """Around D heads a band; heads come in pairs."""
    return _pooled(length, dim, models.heads_of(BANDED, _around(BANDS * dim, BANDS)), seeds)


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


def quick_parts(seeds: int = SEEDS) -> dict[str, list[Run]]:
    """What the kernel has at D = 4 and T = 32, the sharp ones at D = 2; rank; plain induction."""
    return {
        "heads": [
            *_sharp(2, seeds),
            *_sharp(4, seeds),
            *_pooled(32, 4, models.heads_of("window:16", _around(4)), seeds),
            *_pooled(32, 4, models.heads_of("grouped:2", _around(4, 2)), MANY),
            *_banded(32, 4, seeds),
        ],
        "rank": _neighbours(FEW),
        "induction": _induction(("plain",), FEW),
    }


def standard_parts() -> dict[str, list[Run]]:
    """Every variant and model at D = 4, some at 2 and 6; lengths; parts; variants in depth."""
    quick = quick_parts(TWICE)
    others = [*models.recurrences((2, 4, 8)), *models.state_spaces((4, 8))]
    others += [*models.convolutions((4, 8), 32), *models.sets("mean", (4,))]
    placed = [
        net
        for name in ("plain", "differential")
        for net in models.heads_of(name, _around(4), positions=32)
    ]
    parts = models.retrieval(32, 4, parts=True)
    every = ("grouped:1", "talking", "banded:2", "window:4", "top-k:2", "gated")
    deep = _induction((*every, "mixture:1:1", "differential", "linear"), FEW)
    return {
        "heads": [
            *quick["heads"],
            *_brisk(32, 4, [net for name in TIED for net in models.heads_of(name, _around(4))]),
            *_brisk(32, 4, models.heads_of("linear", _around(4))),
            *_brisk(32, 4, models.sets("max", (4,)), MANY),
            *_brisk(32, 4, models.sets("max", (3, 5))),
            *_brisk(32, 4, others),
            *_pooled(32, 4, models.heads_of("grouped:1", _around(4)), CROWD),
            *_pooled(32, 2, models.heads_of("grouped:1", _around(2))),
            *_banded(32, 2),
            *_sharp(6),
            *_banded(32, 6),
        ],
        "lengths": [
            *_pooled(16, 4, models.heads_of("plain", _around(4))),
            *_pooled(64, 4, models.heads_of("plain", _around(4))),
            *_banded(16, 4),
            *_brisk(8, 4, models.recurrences((4, 8))),
        ],
        "positions": models.pooled_runs(parts, placed, BRISK, TWICE),
        "rank": quick["rank"],
        "induction": [*quick["induction"], *deep],
    }


def full_parts() -> dict[str, list[Run]]:
    """The standard tier's settings, trained four times as long, with 32 seeds."""
    parts: dict[str, list[Run]] = {}
    for name, runs in standard_parts().items():
        parts[name] = []
        for run in runs:
            assert isinstance(run.training, Training | Streaming)
            longer = replace(run.training, steps=4 * run.training.steps)
            if run.seed == 0:
                parts[name] += [replace(run, training=longer, seed=seed) for seed in range(32)]
    return parts
