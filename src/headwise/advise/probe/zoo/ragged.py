"""Sequences of different lengths, as a padded array with a mask or as a list; data alone.

A padded token is marked, so that a score of minus infinity hides it from a choice and a value of
zero from an average: the heads needed are those of the target on whole sequences. A sum over the
real tokens is T times the average in which padding counts as zero.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.random import Generator

from headwise.advise.probe.zoo.spoiled import plain
from headwise.advise.probe.zoo.task import Value, ZooData, ZooTask, right
from headwise.advise.probe.zoo.tokens import independent


def _lengths(rng: Generator, count: int, longest: int) -> np.ndarray:
    return rng.integers(longest // 3, longest + 1, count)


def _values(value: Value, inputs: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The target of each sequence's real tokens."""
    found = np.zeros(len(inputs))
    for length in np.unique(lengths):
        rows = lengths == length
        found[rows] = value(torch.from_numpy(inputs[rows, :length])).numpy()
    return found


def _task(
    rng: Generator, value: Value, heads: int, about: str, package: Callable[..., ZooData]
) -> ZooTask:
    longest = int(rng.integers(15, 43))

    def deliver(rng: Generator, inputs: np.ndarray, clean: np.ndarray) -> ZooData:
        lengths = _lengths(rng, len(inputs), longest)
        return package(rng, inputs.astype(np.float32), _values(value, inputs, lengths), lengths)

    return ZooTask(
        f"{about}, lengths {longest // 3} to {longest}",
        right(heads),
        independent(rng, longest, 2),
        value,
        deliver=deliver,
        callable_=False,
    )


def _masked(
    rng: Generator, inputs: np.ndarray, targets: np.ndarray, lengths: np.ndarray
) -> ZooData:
    """Padding is filled with numbers that mean nothing; the mask says where."""
    mask = np.arange(inputs.shape[1]) < lengths[:, None]
    junk = 10 * rng.standard_normal(inputs.shape).astype(np.float32)
    return ZooData(np.where(mask[:, :, None], inputs, junk), targets, mask)


def _listed(
    rng: Generator, inputs: np.ndarray, targets: np.ndarray, lengths: np.ndarray
) -> ZooData:
    rows = [row[:length] for row, length in zip(inputs, lengths, strict=True)]
    return ZooData(rows, targets)


def padded(rng: Generator) -> ZooTask:
    """D maxima or a mean of the real tokens of a padded array: D heads, or one."""
    base = plain(rng)
    return _task(rng, base.value, base.heads, f"{base.about}, padded", _masked)


def listed(rng: Generator) -> ZooTask:
    """D maxima or a mean of a list of sequences of different lengths: D heads, or one."""
    base = plain(rng)
    return _task(rng, base.value, base.heads, f"{base.about}, a list", _listed)


def padded_sums(rng: Generator) -> ZooTask:
    """Σ relu(x − c) over the real tokens: an average in which padding is zero, one head."""
    c = float(rng.uniform(-0.5, 1))
    task = _task(rng, lambda x: (x[..., 0] - c).relu().sum(1), 1, "hinge sum, padded", _masked)
    return replace(task, about=f"{task.about}, c {c:.2f}")


CLASSES = (padded, listed, padded_sums)
