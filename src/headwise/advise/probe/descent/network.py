"""The network that a descent trains: its shape, some steps of training, its held-out error."""

from math import inf

import numpy as np
from torch import Tensor

from headwise.advise.probe.clock import Clock
from headwise.advise.probe.samples.prepare import Prepared
from headwise.core.device import chosen_device
from headwise.nets import AttentionShape, ClassTokenShape, MLPShape
from headwise.training import Training, learning_rates
from headwise.training.samples.choose import make_engine
from headwise.training.samples.data import epoch_order
from headwise.training.samples.stacked import member_loss

BATCH, RATE = 32, 1e-2
EMBED_DIM, QK_DIM, WIDTH, READOUT_WIDTH = 24, 4, 32, 96
_SEGMENT = 500  # steps between two looks at the clock

Params = dict[str, Tensor]


def probe_shape(data: Prepared, heads: int, head_dim: int) -> ClassTokenShape:
    """Narrow heads, free embedding: with few dimensions a head cannot carry two features."""
    return ClassTokenShape(
        token_dim=data.train.inputs.shape[2],
        embed_dim=EMBED_DIM,
        layers=(AttentionShape(heads=heads, qk_dim=QK_DIM, v_dim=head_dim),),
        embed=MLPShape(widths=(WIDTH,), activation="relu"),
        readout=MLPShape(widths=(READOUT_WIDTH,), activation="gelu"),
        outputs=data.train.targets.shape[1],
    )


def train_on(
    data: Prepared,
    shape: ClassTokenShape,
    params: Params,
    seed: int,
    taken: int,
    steps: int,
    rate: float,
    clock: Clock,
    hopeless: float = inf,
) -> tuple[Params, float] | None:
    """Train given weights for some steps; the new weights and their training error.

    After a third of the steps training ends where its error is still above `hopeless`. None if the
    time was over before.
    """
    count = len(data.train.inputs)
    training = _training(data, steps, rate)
    engine, _ = make_engine(shape, training, [params], [seed], chosen_device())
    rates = learning_rates(training)
    losses = []
    for first in range(0, steps, _SEGMENT):
        if clock.over:
            return None
        last = min(first + _SEGMENT, steps)
        order = epoch_order(count, training.batch, seed, taken + first, taken + last)[None]
        losses.append(engine.advance(data.train, order, rates[first:last]))
        clock.took(last - first)
        if last >= steps / 3 and losses[-1].mean() > hopeless * data.baseline:
            clock.took(steps - last)
            break
    tail = np.concatenate(losses, 1)[0, -max(1, steps // 4) :].mean()
    return engine.params()[0], _finite(tail / data.baseline)


def held_out_error(data: Prepared, shape: ClassTokenShape, params: Params) -> float:
    """Loss on the held-out part, in units of the best constant answer's."""
    engine, _ = make_engine(shape, _training(data, 1, RATE), [params], [0], chosen_device())
    outputs = engine.predict(data.holdout.inputs).double()
    loss = member_loss(outputs, data.holdout.targets.double()[None], data.loss)
    return _finite(float(loss[0]) / data.baseline)


def _training(data: Prepared, steps: int, rate: float) -> Training:
    count = len(data.train.inputs)
    return Training(
        steps=steps,
        rate=rate,
        batch=min(BATCH, count),
        warmup=0.05,
        samples=count,
        loss=data.loss,
    )


def _finite(error: float) -> float:
    """A network that diverged has learnt nothing: its error is that of a constant."""
    return float(error) if np.isfinite(error) else 1.0
