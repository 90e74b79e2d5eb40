"""Kind "watched-attention": heads of a decoder are narrowed; how far does its attention move?"""

from functools import lru_cache
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from headwise.allocation.cut import Heads, check_can_be_cut
from headwise.core.errors import require
from headwise.core.progress import OnProgress
from headwise.core.spec import spec
from headwise.lab.kinds._columns import columns
from headwise.lab.kinds._one_by_one import Reading, one_by_one
from headwise.lab.kinds._registry import Kind, Quantity, register
from headwise.lab.kinds._trained_decoder import layer_inputs, train_first, trained_decoder
from headwise.lab.run import Run
from headwise.nets.decoder import DecoderShape
from headwise.theory.saturation import RowChanges, row_changes
from headwise.training import TextTraining

Weights = Literal["trained", "random", "independent"]
What = Literal["rows", "outputs"]

_VALUES = 0x5A70
_WINDOWS = 8
_ERROR = Quantity(
    name="change",
    meaning="Euclidean distance of attention rows; of outputs, divided by the values' spread",
    unit="distance",
)


@spec
class Watch:
    """How far attention moves if queries and keys of all heads are cut to `rank`, at `length`.

    `weights`: "trained"; "random" (as training starts); "independent": random, and the values are
    noise that shares nothing with the keys. `what`: "rows" is the Euclidean distance of attention
    rows; "outputs" that of the heads' outputs, in units of the values' spread.
    """

    weights: Weights
    rank: int
    length: int
    what: What

    def __post_init__(self) -> None:
        require(self.weights in get_args(Weights), f"there are no weights {self.weights!r}")
        require(self.what in get_args(What), f"what is rows or outputs, not {self.what!r}")
        require(self.rank >= 1, f"rank is {self.rank}; the least is 1")
        require(self.length >= 4, f"length is {self.length}; the least is 4")


def _check(run: Run) -> None:
    check_can_be_cut(run.net)
    watch, smallest = run.measure, min(layer.qk_dim for layer in run.net.layers)
    require(watch.rank <= smallest, f"rank is {watch.rank}; heads have up to {smallest}")
    require(
        watch.length <= run.net.length,
        f"length is {watch.length}; the decoder takes up to {run.net.length}",
    )


def _prepare(run: Run, on_progress: OnProgress) -> None:
    if run.measure.weights == "trained":
        train_first(run, on_progress)


def _measure(run: Run) -> Reading:
    """The mean distance, over rows, heads and layers."""
    watch: Watch = run.measure
    found = _measured(
        run.task, run.net, run.training, run.seed, watch.weights, watch.rank, watch.length
    )
    by_layer = [layer[watch.what] for layer in found]
    facts = {f"layer_{index}": value for index, value in enumerate(by_layer)}
    for name in ("shift", "bound", "excess"):
        facts[name] = max(layer[name] for layer in found)
    return Reading(float(np.mean(by_layer)), facts)


@lru_cache(maxsize=64)
def _measured(
    task: Any, shape: DecoderShape, training: Any, seed: int, weights: str, rank: int, length: int
) -> list[dict[str, float]]:
    """By layer: distances of rows and outputs, and the certificate beside the truth."""
    if weights == "trained":
        known = trained_decoder(task, shape, training, seed)
        params, seen = known.weights, known.inputs
    else:
        params = shape.initial_params(seed)
        seen = layer_inputs(shape, params, task.batch(_WINDOWS * 4, seed, 0)[:, :-1])
    windows = task.validation(_WINDOWS)[:, :length]
    read = layer_inputs(shape, params, windows)
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


def _describe(run: Run) -> dict[str, Any]:
    net, watch = run.net, run.measure
    return {
        "text": run.task.name,
        "weights": watch.weights,
        "what": watch.what,
        "rank": watch.rank,
        "length": watch.length,
        "head_dim": net.layers[0].qk_dim,
        "layers": len(net.layers),
        "width": net.width,
        "steps": run.training.steps if watch.weights == "trained" else 0,
    }


WATCHED_ATTENTION = register(
    Kind(
        name="watched-attention",
        error=_ERROR,
        columns=columns("text weights what rank length head_dim layers width steps"),
        describe=_describe,
        perform=one_by_one(_measure, _ERROR, "decoder", "its attention is watched", _prepare),
        cost=lambda run: float(run.measure.length**2 * len(run.net.layers) * 1e3),
        facts=columns("shift bound excess"),
        nets=(DecoderShape,),
        training=TextTraining,
        measure=Watch,
        check=_check,
    )
)
