"""Runs that narrow the queries and keys of every head of a decoder and watch its attention."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from headwise.allocation.cut import Heads, check_can_be_cut
from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.lab.kinds.cut_layer import base
from headwise.lab.run import Run
from headwise.nets import DecoderShape
from headwise.theory.saturation import RowChanges, row_changes
from headwise.training import Outcome

_VALUES = 0x5A70
_WINDOWS = 8


@spec
class Saturation:
    """How far attention moves if queries and keys of all heads are cut to `rank`, at `length`.

    `weights`: "trained"; "random" (as training starts); "independent": random, and the values are
    noise that shares nothing with the keys. `what`: "rows" is the Euclidean distance of attention
    rows; "outputs" that of the heads' outputs, in units of the values' spread.
    """

    shape: DecoderShape
    weights: Literal["trained", "random", "independent"]
    rank: int
    length: int
    what: Literal["rows", "outputs"]

    def __post_init__(self) -> None:
        check_can_be_cut(self.shape)
        smallest = min(layer.qk_dim for layer in self.shape.layers)
        require(1 <= self.rank <= smallest, f"rank is {self.rank}; heads have up to {smallest}")
        require(4 <= self.length <= self.shape.length, f"length is 4 to {self.shape.length}")


def watch_attention(
    job: Sequence[Run], on_progress: Callable[[float], None], _: Path | None
) -> list[Outcome]:
    """One outcome a run: the mean distance, over rows, heads and layers."""
    outcomes = []
    for number, run in enumerate(job):
        net: Saturation = run.net
        found = _measured(
            run.task, net.shape, run.training, run.seed, net.weights, net.rank, net.length
        )
        by_layer = [layer[net.what] for layer in found]
        facts = {f"layer_{index}": value for index, value in enumerate(by_layer)}
        for name in ("shift", "bound", "excess"):
            facts[name] = max(layer[name] for layer in found)
        error = float(np.mean(by_layer))
        outcomes.append(
            Outcome(
                seed=run.seed,
                error=error,
                error_last=error,
                unit="distance" if net.what == "rows" else "spread of the values",
                best_step=None,
                diverged=False,
                curve=(),
                engine="decoder",
                engine_reason="its attention is watched",
                params={},
                facts=facts,
            )
        )
        on_progress((number + 1) / len(job))
    return outcomes


@lru_cache(maxsize=64)
def _measured(
    task: Any, shape: DecoderShape, training: Any, seed: int, weights: str, rank: int, length: int
) -> list[dict[str, float]]:
    """By layer: distances of rows and outputs, and the certificate beside the truth."""
    if weights == "trained":
        known = base(task, shape, training, seed)
        params, seen = known.weights, known.inputs
    else:
        params = shape.initial_params(seed)
        seen = _inputs(shape, params, task.batch(_WINDOWS * 4, seed, 0)[:, :-1])
    windows = task.validation(_WINDOWS)[:, :length]
    read = _inputs(shape, params, windows)
    rng = np.random.default_rng([seed, length, _VALUES])
    found = []
    for index, layer in enumerate(shape.layers):
        heads = Heads.of(params, index, layer)
        narrow = heads.narrowed(seen[index], rank, layer.v_dim)
        x = read[index].unflatten(0, (len(windows), -1)).double()
        change = row_changes(_scores(x, heads), _scores(x, narrow))
        values = torch.einsum("btw,hvw->bhtv", x, heads.value).numpy()
        if weights == "independent":
            values = rng.standard_normal(values.shape)
        found.append(_distances(change, values))
    return found


def _inputs(shape: DecoderShape, params: dict[str, Tensor], tokens: Tensor) -> list[Tensor]:
    with torch.no_grad():
        stacked = {name: part[None] for name, part in params.items()}
        return [x.flatten(0, 2) for x in shape.layer_inputs(stacked, tokens[None])]


def _scores(x: Tensor, heads: Heads) -> np.ndarray[Any, Any]:
    """Causal scores of the last quarter of the queries, which see nearly all keys."""
    length, dim = x.shape[1], heads.query.shape[1]
    first = length - length // 4
    query = torch.einsum("btw,hdw->bhtd", x[:, first:], heads.query)
    key = torch.einsum("btw,hdw->bhtd", x, heads.key)
    scores = query @ key.mT / sqrt(dim)
    hidden = torch.arange(length)[None, :] > torch.arange(first, length)[:, None]
    return scores.masked_fill(hidden, -torch.inf).numpy()


def _distances(change: RowChanges, values: np.ndarray[Any, Any]) -> dict[str, float]:
    moved = change.after - change.before
    spread = np.sqrt(values.var(axis=-2).sum(-1))[..., None]  # of a head's values in a window
    return {
        "rows": float(np.linalg.norm(moved, axis=-1).mean()),
        "outputs": float((np.linalg.norm(moved @ values, axis=-1) / spread).mean()),
        "shift": float(change.shift.mean()),
        "bound": float(change.bound.mean()),
        "excess": float((change.shift - change.bound).max()),
    }


def saturation_cost(run: Run) -> float:
    return float(run.net.length**2 * len(run.net.shape.layers) * 1e3)


def saturation_columns(run: Run) -> dict[str, Any]:
    net = run.net
    return {
        "text": run.task.name,
        "weights": net.weights,
        "what": net.what,
        "rank": net.rank,
        "length": net.length,
        "head_dim": net.shape.layers[0].qk_dim,
        "layers": len(net.shape.layers),
        "width": net.shape.width,
        "steps": run.training.steps if net.weights == "trained" else 0,
    }
