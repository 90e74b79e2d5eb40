"""What real data do to a task: noise, offsets, tails, rare events, repetition, more coordinates.

Each takes a plain task, D maxima (D heads) or a mean (one head), and spoils it. The number stays
that of the plain task; a refusal is right as well where the spoiling can hide a head.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from headwise.advise.probe.zoo.extrema import weighted_maxima
from headwise.advise.probe.zoo.task import REFUSE, Value, ZooData, ZooTask, right
from headwise.advise.probe.zoo.tokens import correlated, heavy_tailed, independent, with_irrelevant


@dataclass(frozen=True)
class Plain:
    """A plain target of two coordinates, and the heads that it needs."""

    value: Value
    heads: int
    about: str


def plain(rng: Generator) -> Plain:
    """One to three maxima, or a mean."""
    count = int(rng.integers(0, 4))
    if count == 0:
        return Plain(lambda x: torch.sin(1.5 * x[..., 0]).mean(1), 1, "mean")
    word = "maximum" if count == 1 else "maxima"
    return Plain(weighted_maxima(rng, count, 2), count, f"{count} {word}")


def _task(rng: Generator, spoiling: str, refusal: bool = False) -> ZooTask:
    base, length = plain(rng), int(rng.integers(12, 41))
    answers = right(base.heads, REFUSE) if refusal else right(base.heads)
    about = f"{base.about} {spoiling}, length {length}"
    return ZooTask(about, answers, independent(rng, length, 2), base.value)


def pure_noise(rng: Generator) -> ZooTask:
    """Targets drawn without a look at the tokens: nothing to count, a refusal."""
    length = int(rng.integers(8, 41))
    labels = int(rng.integers(0, 6))

    def deliver(rng: Generator, inputs: np.ndarray, clean: np.ndarray) -> ZooData:
        drawn = (
            rng.integers(labels, size=len(inputs))
            if labels > 1
            else rng.standard_normal(len(inputs))
        )
        return ZooData(inputs.astype(np.float32), drawn)

    about = f"pure noise, {labels} classes" if labels > 1 else "pure noise"
    return ZooTask(
        f"{about}, length {length}",
        right(REFUSE),
        independent(rng, length, 2),
        lambda x: x[:, 0, 0],
        deliver=deliver,
        callable_=False,
    )


def on_an_offset(rng: Generator) -> ZooTask:
    """10^k + a plain target, k ≤ 6: nearly constant, in double precision the same task."""
    task, offset = _task(rng, "on a large offset"), 10.0 ** int(rng.integers(2, 7))
    value = task.value
    return replace(task, value=lambda x: offset + value(x), about=f"{task.about}, {offset:.0e}")


def rare_events(rng: Generator) -> ZooTask:
    """Is max_t x above its 99.8 % quantile? One choice, one head; few events: or a refusal."""
    length = int(rng.integers(12, 41))
    tokens = independent(rng, length, 2)
    border = float(np.quantile(tokens(rng, 20_000)[..., 0].max(1), 0.998))
    return ZooTask(
        f"a rare event, length {length}",
        right(1, REFUSE),
        tokens,
        lambda x: (x[..., 0].amax(1) > border).long(),
        labels=True,
    )


def heavy_tailed_tokens(rng: Generator) -> ZooTask:
    """Student's t with 2.5 to 5 degrees of freedom: the target's extremes are those of its tokens.

    A few sequences are most of the error, so a refusal is right as well.
    """
    task, freedom = _task(rng, "of heavy-tailed tokens", refusal=True), rng.uniform(2.5, 5)
    length = task.tokens(np.random.default_rng(0), 1).shape[1]
    return replace(task, tokens=heavy_tailed(length, 2, float(freedom)))


def heavy_tailed_targets(rng: Generator) -> ZooTask:
    """exp of a plain target: a monotone function of it, which needs the same heads."""
    task, rate = _task(rng, "in an exponential"), float(rng.uniform(1, 2.5))
    value = task.value
    sample = value(torch.from_numpy(task.tokens(np.random.default_rng(0), 4096)))
    mean, scale = sample.mean(), sample.std()
    return replace(task, value=lambda x: torch.exp(rate * (value(x) - mean) / scale))


def uneven_noise(rng: Generator) -> ZooTask:
    """Noise whose size, 5 to 40 % of the deviation, depends on the first token; D or a refusal."""
    task, size = _task(rng, "with uneven noise", refusal=True), float(rng.uniform(0.05, 0.4))

    def deliver(rng: Generator, inputs: np.ndarray, clean: np.ndarray) -> ZooData:
        scale = size * clean.std() * np.abs(inputs[:, 0, 0])
        noisy = clean + scale * rng.standard_normal(len(clean))
        return ZooData(inputs.astype(np.float32), noisy)

    return replace(
        task, deliver=deliver, callable_=False, about=f"{task.about}, {100 * size:.0f} %"
    )


def irrelevant_coordinates(rng: Generator) -> ZooTask:
    """5 to 30 more coordinates that the target does not look at: the same heads."""
    more = int(rng.integers(5, 31))
    task = _task(rng, f"among {more} irrelevant coordinates")
    return replace(task, tokens=with_irrelevant(task.tokens, more))


def rounded_tokens(rng: Generator) -> ZooTask:
    """Coordinates rounded to 1/5 to 1/100 of their deviation: tokens tie; the same heads."""
    task, steps = _task(rng, "of rounded tokens"), float(10 ** rng.uniform(0.7, 2))
    drawn = task.tokens
    return replace(task, tokens=lambda rng, count: np.round(drawn(rng, count) * steps) / steps)


def coordinates_in_other_units(rng: Generator) -> ZooTask:
    """Each coordinate in a unit of its own, from 1e-4 to 1e4: the same function, the same heads."""
    task, units = _task(rng, "in other units"), 10 ** rng.uniform(-4, 4, 2)
    drawn, value, back = task.tokens, task.value, torch.from_numpy(1 / units)
    return replace(
        task,
        tokens=lambda rng, count: drawn(rng, count) * units,
        value=lambda x: value(x * back),
    )


def correlated_tokens(rng: Generator) -> ZooTask:
    """Tokens that remember the one before and share a part: the same function, the same heads."""
    memory, shared = float(rng.uniform(0, 0.9)), float(rng.uniform(0, 0.8))
    task = _task(rng, f"of correlated tokens ({memory:.2f}, {shared:.2f})")
    length = task.tokens(np.random.default_rng(0), 1).shape[1]
    return replace(task, tokens=correlated(length, 2, memory, shared))


def repeated_sequences(rng: Generator) -> ZooTask:
    """Few different sequences, repeated. Of 5 to 300 nothing can be told: a refusal. Of 2,000 to
    8,000 the held-out part is no longer fresh: D or a refusal.
    """
    task, few = _task(rng, "repeated", refusal=True), rng.random() < 0.5
    distinct = int(rng.integers(5, 301) if few else rng.integers(2000, 8001))

    def deliver(rng: Generator, inputs: np.ndarray, clean: np.ndarray) -> ZooData:
        again = rng.integers(min(distinct, len(inputs)), size=len(inputs))
        return ZooData(inputs[again].astype(np.float32), clean[again])

    return replace(
        task,
        deliver=deliver,
        callable_=False,
        acceptable=right(REFUSE) if few else task.acceptable,
        about=f"{task.about}, {distinct} different ones",
    )


def several_outputs(rng: Generator) -> ZooTask:
    """A row of outputs, each a maximum or the mean of the next coordinate: their heads add up."""
    maxima, length = int(rng.integers(1, 4)), int(rng.integers(12, 33))
    with_mean = rng.random() < 0.5

    def value(x: Tensor) -> Tensor:
        parts = [x[..., i].amax(1) for i in range(maxima)]
        if with_mean:
            parts.append(torch.tanh(x[..., maxima]).mean(1) * 3)
        return torch.stack(parts, 1)

    words = f"{maxima} maxima{' and a mean' if with_mean else ''} as outputs, length {length}"
    tokens = independent(rng, length, maxima + 1)
    return ZooTask(words, right(maxima + with_mean), tokens, value)


CLASSES = (
    pure_noise,
    on_an_offset,
    rare_events,
    heavy_tailed_tokens,
    heavy_tailed_targets,
    uneven_noise,
    irrelevant_coordinates,
    rounded_tokens,
    coordinates_in_other_units,
    correlated_tokens,
    repeated_sequences,
    several_outputs,
)
