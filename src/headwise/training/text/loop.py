"""Training decoders on text: many seeds of one specification in, an outcome a seed out.

On a CPU narrow decoders are computed a few at a time and others one after the other, each to the
last bit as if alone (`headwise.training.text.company`). On another device all are stacked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log, sqrt
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from headwise.core.errors import require
from headwise.nets import DecoderShape
from headwise.nets.base import forward_and_penalty
from headwise.nets.compiled import computed_by, cross_entropy
from headwise.tasks.protocols import TextTask
from headwise.training.ensemble import Ensemble
from headwise.training.outcome import Outcome, make_outcome
from headwise.training.session import Session
from headwise.training.state import TrainingState
from headwise.training.text.company import members_of_a_stack
from headwise.training.text.specification import TextTraining

NATS = "nats a token"

_LOGITS_AT_ONCE = 1 << 22  # bounds the windows in a piece of the validation set


def train_on_text(
    task: TextTask, shape: DecoderShape, training: TextTraining, session: Session
) -> list[Outcome]:
    """Train one decoder a seed. An outcome depends on (task, shape, training, seed) alone.

    Errors are nats a token on held-out text; the one after the last step counts. With a checkpoint
    file a training that was killed goes on where it was; only its timing differs then.
    """
    check_fits(task, shape)
    seeds, device = session.seeds, session.device
    initial = [shape.initial_params(seed) for seed in seeds]
    together = None
    if device == "cpu":
        together = members_of_a_stack(shape, training.batch, task.length, len(seeds))
    ensemble = Ensemble(shape, training, initial, device, together)
    work = (task, shape, training, tuple(seeds))
    state = TrainingState(ensemble, work, session.file)
    state.load()
    windows = task.validation(training.validation)
    spreads: list[float] = []

    def step(number: int, rate: float) -> Tensor:
        tokens = torch.stack([task.batch(training.batch, seed, number) for seed in seeds])
        return descend_on(ensemble, tokens.to(device), rate, training.clip)

    def errors() -> list[float]:
        means, spreads[:] = evaluate(ensemble, windows, device)
        return means

    state.run(training, step, errors, session.on_progress)
    read = len(seeds) * training.steps * training.batch * task.length
    facts = {
        "tokens_per_second": read / state.seconds,
        "flops_per_token": flops_per_token(shape, task.length),
    }
    engine = "decoder", f"the only engine for text; {computed_by(device)}"
    return [
        _outcome(seed, curve, params, spread, facts, task, engine)
        for seed, curve, params, spread in zip(
            seeds, state.curves, ensemble.params(), spreads, strict=True
        )
    ]


def evaluate(
    ensemble: Ensemble, windows: Int[Tensor, "windows window"], device: str = "cpu"
) -> tuple[list[float], list[float]]:
    """Mean nats a token of every member, and the standard error of each over windows."""
    shape = ensemble.shape
    assert isinstance(shape, DecoderShape)
    rows = max(1, _LOGITS_AT_ONCE // (shape.vocabulary * windows.shape[1]))
    parts = []
    for piece in windows.split(rows):
        tokens = piece.unsqueeze(0).to(device)
        logits = ensemble.predict(tokens[..., :-1], apart=device == "cpu")
        parts.append(_nats(logits, tokens[..., 1:]).mean(-1).cpu().double())
    members = torch.cat(parts, 1).numpy()  # (members, windows); each is summed as if alone
    means = [float(each.mean()) for each in members]
    return means, [float(each.std()) / sqrt(len(each)) for each in members]


def flops_per_token(shape: DecoderShape, length: int) -> float:
    """Floating-point operations of a training step (matrix products), counted by torch, a token."""
    shape = replace(shape, length=length)
    params = {
        name: torch.zeros(1, *size, device="meta", requires_grad=True)
        for name, size in shape.parameter_shapes().items()
    }
    tokens = torch.zeros(1, 1, length, dtype=torch.int64, device="meta")
    with FlopCounterMode(display=False) as counter:
        loss = shape.forward(params, tokens).sum()
        torch.autograd.grad(loss, list(params.values()))
    return counter.get_total_flops() / length


def check_fits(task: TextTask, shape: DecoderShape) -> None:
    """Refuse a decoder of another vocabulary, or of shorter windows, than the text's."""
    require(
        shape.vocabulary == task.vocabulary,
        f"the text has a vocabulary of {task.vocabulary}, the decoder one of {shape.vocabulary}",
    )
    require(
        task.length <= shape.length,
        f"the windows have {task.length} tokens; the decoder takes up to {shape.length}",
    )


def descend_on(
    ensemble: Ensemble, tokens: Int[Tensor, "members batch window"], rate: float, clip: float
) -> Float[Tensor, " members"]:
    """One step on these windows, as `train` takes it; returns each member's loss."""

    def loss_of(leaves: Mapping[str, Tensor], members: slice) -> Tensor:
        mine = tokens[members]
        logits, penalty = forward_and_penalty(ensemble.shape, leaves, mine[..., :-1])
        return _nats(logits, mine[..., 1:]).mean((1, 2)) + penalty

    return ensemble.descend(loss_of, rate, clip)


def _nats(
    logits: Float[Tensor, "members batch length vocabulary"],
    wanted: Int[Tensor, "#members batch length"],
) -> Float[Tensor, "members batch length"]:
    """Cross-entropy of every token."""
    return cross_entropy(logits, wanted.expand(logits.shape[:-1]))


def _outcome(
    seed: int,
    curve: Sequence[tuple[int, float, float]],
    params: dict[str, Tensor],
    standard_error: float,
    facts: Mapping[str, float],
    task: TextTask,
    engine: tuple[str, str],
) -> Outcome:
    """The score is the last evaluation: choosing the best one would be choosing by the score."""
    made = make_outcome(seed, curve, NATS, engine, params)
    extra: dict[str, Any] = {"standard_error": standard_error}
    if made.error_last is not None:
        extra["bits_per_byte"] = made.error_last / log(2) / task.bytes_per_token
    return replace(made, error=made.error_last, best_step=curve[-1][0], facts={**extra, **facts})
