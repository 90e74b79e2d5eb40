"""A network without attention: the mean of the tokens' images, read by an MLP. One head suffices
for whatever it learns, since a head with constant scores is a mean.

It is the class-token network with one wide head whose queries and keys are zero. Both gradients
then vanish (the score is their product), so they stay zero: the same engine trains it.
"""

from math import inf

import numpy as np
import torch

from headwise.advise.probe.calibration import NOTHING_LEARNT
from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.forms import (
    guessed_forms,
    most_used,
    seen_through,
    whole_sequences,
)
from headwise.advise.probe.descent.network import READOUT_WIDTH, Params, held_out_error, train_on
from headwise.advise.probe.descent.removal import head_outputs
from headwise.advise.probe.samples.prepare import Prepared
from headwise.advise.probe.verdict import FLOOR, FLOOR_OF_LABELS
from headwise.nets import AttentionShape, ClassTokenShape, MLPShape

CHANNELS, WIDTH = 48, 64
PLANS = ((12_000, 3e-3, True), (6_000, 1e-2, False))  # steps, rate, kinks spread over the tokens
HOPELESS = 10.0  # a factor that sharper kinks do not make up for
HOPELESS_EARLY = 300.0  # a factor that two thirds of the steps do not make up for; 100 they do
FORMS_STEPS, FORMS_RATE = 12_000, 3e-3
# What linear forms may leave. The largest of up to four sums leaves 2e-3 to 4e-3, the highest point
# of a walk, which takes more forms than a head has value dimensions, 2e-2.
FORMS_HOLD, FORMS_HOLD_OF_LABELS = 8e-3, 0.2
FORMS_PROMISE = 10.0  # times as much: what a first guess of the forms may leave
_STEEPNESS = 3.0
_SEEN = 1024  # sequences that the initial weights are fitted to
_STREAM = 0x9001
_FIRST = "embed.0.weight"


def pooled_error(
    data: Prepared, seed: int, clock: Clock, reached: float, share: float = 1.0
) -> float | None:
    """The held-out error of the better of two trainings; None if the time was over before.

    Smooth targets are learnt by the first, kinks sharpen in the second; which is spared where the
    first is far above the error that heads have `reached`. `share` of the steps.
    """
    errors: list[float] = []
    for steps, rate, spread in PLANS:
        shape = _shape(data)
        start = _initial(data, shape, seed, spread)
        worst = min(HOPELESS_EARLY * (reached + FLOOR), NOTHING_LEARNT)
        trained = _train(data, shape, start, seed, round(share * steps), rate, clock, worst)
        if trained is None:
            return None
        errors.append(held_out_error(data, shape, trained))
        if errors[-1] > HOPELESS * (reached + FLOOR):
            break
    return min(errors)


def forms_error(data: Prepared, seed: int, clock: Clock, share: float = 1.0) -> float | None:
    """The held-out error of a network that sees a few linear forms of the sequence.

    1 where there are none to be looked for, or they do not hold the target; None if the time was
    over before. `share` of the steps.
    """
    whole = whole_sequences(data)
    if whole is None:
        return 1.0
    labels = data.loss != "mse"
    most, solved = (FORMS_HOLD_OF_LABELS, FLOOR_OF_LABELS) if labels else (FORMS_HOLD, FLOOR)
    forms = guessed_forms(whole)
    seen = seen_through(whole, forms)
    steps, shape = round(share * FORMS_STEPS), _shape(seen)
    params = _train(seen, shape, _initial(seen, shape, seed, True), seed, steps, FORMS_RATE, clock)
    if params is None:
        return None
    error = held_out_error(seen, shape, params)
    if solved < error < min(FORMS_PROMISE * most, NOTHING_LEARNT):
        lifted = dict(params)
        lifted[_FIRST] = (params[_FIRST].double() @ forms.mT).float().contiguous()
        better = _train(whole, _shape(whole), lifted, seed, steps, FORMS_RATE, clock)
        if better is None:
            return None
        forms = most_used(better[_FIRST], forms.shape[1])
        seen = seen_through(whole, forms)
        lowered = dict(better)
        lowered[_FIRST] = (better[_FIRST].double() @ forms).float().contiguous()
        params = _train(seen, shape, lowered, seed, steps, FORMS_RATE, clock)
        if params is None:
            return None
        error = min(error, held_out_error(seen, shape, params))
    return error if error < most else 1.0


def _shape(data: Prepared) -> ClassTokenShape:
    return ClassTokenShape(
        token_dim=data.train.inputs.shape[2],
        embed_dim=CHANNELS,
        layers=(AttentionShape(heads=1, qk_dim=1, v_dim=CHANNELS),),
        embed=MLPShape(widths=(WIDTH,), activation="relu"),
        readout=MLPShape(widths=(READOUT_WIDTH,), activation="gelu"),
        outputs=data.train.targets.shape[1],
    )


def _train(
    data: Prepared,
    shape: ClassTokenShape,
    start: Params,
    seed: int,
    steps: int,
    rate: float,
    clock: Clock,
    hopeless: float = inf,
) -> Params | None:
    clock.planned += steps
    trained = train_on(data, shape, start, seed, 0, steps, rate, clock, hopeless)
    return None if trained is None else trained[0]


def _initial(data: Prepared, shape: ClassTokenShape, seed: int, spread_kinks: bool) -> Params:
    """No attention; the kinks of the token network at tokens, its mean in standard units.

    A mean of T tokens varies √T less than a token, and the readout would start nearly blind.
    """
    params = shape.initial_params(seed)
    for name in params:
        if ".query." in name or ".key." in name:
            params[name] = torch.zeros_like(params[name])
    if not spread_kinks:
        return params
    rng, inputs = np.random.default_rng([seed, _STREAM]), data.train.inputs
    weight = params["embed.0.weight"]
    steep = _STEEPNESS * np.exp(rng.uniform(-1, 1, (len(weight), 1)))
    weight = weight / weight.norm(dim=1, keepdim=True) * torch.from_numpy(steep).float()
    rows = rng.integers(len(inputs), size=len(weight))
    tokens = inputs[rows, rng.integers(inputs.shape[1], size=len(weight))]
    params["embed.0.weight"] = weight.contiguous()
    params["embed.0.bias"] = -(weight * tokens).sum(1)
    outputs = head_outputs(shape, params, inputs[:_SEEN])[:, 0]
    mixing = params["layers.0.out.weight"].double() / outputs.std(0).clamp_min(1e-6)
    params["layers.0.out.weight"] = mixing.float().contiguous()
    params["layers.0.out.bias"] = -(mixing @ outputs.mean(0)).float()
    return params
