"""Training decoders on text: many seeds of one specification in, an outcome a seed out.

On a CPU members are computed one after the other: stacked, two or three decoders of width 64 ran
0 to 7 % faster than alone and those of width 96 and 128 no faster (AVX2, one thread), which is
not worth the memory. Then a member is computed as if alone, to the last bit. On another device
they are stacked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log, sqrt
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from headwise.core.errors import require
from headwise.nets import DecoderShape
from headwise.tasks.language import Language
from headwise.training.checkpoint import Checkpoint
from headwise.training.ensemble import Ensemble
from headwise.training.loop import Outcome, evaluation_segments, learning_rates, make_outcome
from headwise.training.state import TrainingState
from headwise.training.text_training import TextTraining

_PROGRESS_STEPS = 10
_LOGITS_AT_ONCE = 1 << 22  # bounds the windows in a piece of the validation set


def train_text(
    task: Language,
    shape: DecoderShape,
    training: TextTraining,
    seeds: Sequence[int],
    on_progress: Callable[[float], None] | None = None,
    device: str = "cpu",
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 60.0,
) -> list[Outcome]:
    """Train one decoder a seed. An outcome depends on (task, shape, training, seed) alone.

    Errors (`error`) are nats a token on held-out text after the last step. With a `checkpoint` file
    a training that was killed goes on where it was; only its timing differs then.
    """
    _check(task, shape, seeds)
    initial = [shape.initial_params(seed) for seed in seeds]
    ensemble = Ensemble(shape, training, initial, device, stacked=device != "cpu")
    file = Checkpoint(checkpoint, checkpoint_seconds)
    state = TrainingState(ensemble, (task, shape, training, tuple(seeds)), file)
    resumed = state.load()
    windows, rates = task.validation(training.validation), learning_rates(training)
    for first, last in evaluation_segments(training):
        if last <= state.evaluated:
            continue
        for step in range(max(first, resumed), last):
            tokens = torch.stack([task.batch(training.batch, seed, step) for seed in seeds])
            loss = _step(ensemble, tokens.to(device), float(rates[step]), training.clip)
            state.count(loss.cpu())
            if on_progress is not None and state.done % _PROGRESS_STEPS == 0:
                on_progress(state.done / training.steps)
            state.save_if_due()
        errors, spreads = evaluate(ensemble, windows, device)
        state.note(errors, last - first)
    facts = {
        "tokens_per_second": training.steps * training.batch * task.length / state.seconds,
        "flops_per_token": flops_per_token(shape, task.length),
    }
    return [
        _outcome(seed, curve, params, spread, facts, task)
        for seed, curve, params, spread in zip(
            seeds, state.curves, ensemble.params(), spreads, strict=True
        )
    ]


def evaluate(
    ensemble: Ensemble, windows: Int[Tensor, "windows length+1"], device: str = "cpu"
) -> tuple[list[float], list[float]]:
    """Mean nats a token of every member, and the standard error of each over windows."""
    shape = ensemble.shape
    assert isinstance(shape, DecoderShape)
    rows = max(1, _LOGITS_AT_ONCE // (shape.vocabulary * windows.shape[1]))
    parts = []
    for piece in windows.split(rows):
        tokens = piece.unsqueeze(0).to(device)
        logits = ensemble.predict(tokens[..., :-1])
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


def _step(
    ensemble: Ensemble, tokens: Int[Tensor, "members batch length+1"], rate: float, clip: float
) -> Tensor:
    def cross_entropy(leaves: Mapping[str, Tensor], members: slice) -> Tensor:
        mine = tokens[members]
        return _nats(ensemble.shape.forward(leaves, mine[..., :-1]), mine[..., 1:]).mean((1, 2))

    return ensemble.descend(cross_entropy, rate, clip)


def _nats(logits: Float[Tensor, "members batch length vocabulary"], wanted: Tensor) -> Tensor:
    """Cross-entropy of every token: (members, batch, length)."""
    wanted = wanted.expand(logits.shape[:-1])
    flat = functional.cross_entropy(logits.flatten(0, 2), wanted.flatten(), reduction="none")
    return flat.unflatten(0, wanted.shape)


def _outcome(
    seed: int,
    curve: Sequence[tuple[int, float, float]],
    params: dict[str, Tensor],
    standard_error: float,
    facts: Mapping[str, float],
    task: Language,
) -> Outcome:
    """The score is the last evaluation: choosing the best one would be choosing by the score."""
    made = make_outcome(seed, curve, "decoder", "the only engine for text", params)
    extra: dict[str, Any] = {"standard_error": standard_error}
    if made.error_last is not None:
        extra["bits_per_byte"] = made.error_last / log(2) / task.bytes_per_token
    return replace(made, error=made.error_last, best_step=curve[-1][0], facts={**extra, **facts})


def _check(task: Language, shape: DecoderShape, seeds: Sequence[int]) -> None:
    require(len(seeds) > 0 and len(set(seeds)) == len(seeds), "seeds are distinct, at least one")
    require(all(seed >= 0 for seed in seeds), "a seed is a whole number, not negative")
    require(
        shape.vocabulary == task.vocabulary,
        f"the text has a vocabulary of {task.vocabulary}, the decoder one of {shape.vocabulary}",
    )
    require(
        task.length <= shape.length,
        f"the windows have {task.length} tokens; the decoder takes up to {shape.length}",
    )
