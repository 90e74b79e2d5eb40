"""How many heads does this task need? Everything the probe knows, in one finding."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from headwise.advise.probe.calibration import (
    LARGEST_FLOOR,
    LITTLE_LEFT,
    LITTLE_LEFT_OF_LABELS,
)
from headwise.advise.probe.clock import Clock
from headwise.advise.probe.conclude import (
    conclude,
    counts_heads,
    refuse,
    with_depth,
    with_head_dim,
    with_lengths,
)
from headwise.advise.probe.counting.extremum import Extremum, examine_extremum
from headwise.advise.probe.counting.invariance import Invariance, look_at_shorter
from headwise.advise.probe.counting.sensitivity import Sensitivity, measure_sensitivity
from headwise.advise.probe.descent.deeper import try_second_layer
from headwise.advise.probe.descent.head_dim import measure_head_dim
from headwise.advise.probe.descent.lengths import measure_lengths
from headwise.advise.probe.descent.screening import POSITIONS_PAY, choose_positions
from headwise.advise.probe.descent.search import WIDE_HEAD_DIM, find_transition
from headwise.advise.probe.descent.state import DescentFile
from headwise.advise.probe.descent.walk import descend
from headwise.advise.probe.finding import Finding
from headwise.advise.probe.samples.function import TargetFunction
from headwise.advise.probe.samples.given import Kind, Samples
from headwise.advise.probe.samples.options import check_options, too_few
from headwise.advise.probe.samples.prepare import Prepared, prepare
from headwise.advise.probe.samples.readers import read
from headwise.core.device import computing_on
from headwise.core.errors import InputError, require
from headwise.core.files import check_can_write
from headwise.core.memory import TO_TRAIN, check_can_draw, check_room
from headwise.core.progress import OnProgress, quiet

DRAWN_SAMPLES = 20_000
FIGURES = (".png", ".svg", ".pdf", ".html")
_DRAW = 0xD4A3


def probe(
    *data: Any,
    inputs: Any = None,
    targets: Any = None,
    target: Callable[..., Any] | None = None,
    sampler: Callable[..., Any] | None = None,
    mask: Any = None,
    sequence: str | None = None,
    kind: Kind | None = None,
    positions: bool | None = None,
    max_heads: int = 12,
    seconds: float = 120.0,
    train: bool | None = None,
    heads_only: bool = False,
    seed: int = 0,
    state: str | Path | None = None,
    figure: str | Path | None = None,
    jobs: int | None = None,
    device: str = "cpu",
    on_progress: OnProgress = quiet,
) -> Finding:
    """How many attention heads a task needs, from data, from files or from the function itself.

    Data, `probe(inputs, targets)`: `inputs` (samples, length, token_dim), or a list of sequences
    of different lengths; `targets` (samples,) or (samples, outputs), or class labels; `mask`
    (samples, length), true where a token is real. `kind` and `positions` (does the order of the
    tokens matter?) are found out unless given.

    Files, `probe("data.npz", inputs="X", targets="y")`: one .npz, .safetensors, .parquet or .csv
    file, or two .npy files; `inputs`, `targets`, `mask` and `sequence` name what is in them, and
    can be left out where the names are usual (`headwise.advise.probe.read`).

    Function, `probe(target=function, sampler=draw)`: `target` maps a batch of sequences to
    numbers, `sampler(count, seed)` draws such a batch. It is trained on only where counting
    influential tokens does not settle the matter, or where `train` is true.

    `max_heads` is how many are tried; `heads_only` leaves out how wide they are to be and whether a
    second layer helps; `jobs` is how many threads train, on the `device` auto, cpu, cuda or mps.
    `state` names a file that
    keeps finished training, so that a stopped probe goes on from there; `figure` one that the
    figure is written to. A finding is a function of the data and `seed`, as long as `seconds` are
    enough.
    """
    check_options(
        max_heads=max_heads,
        seconds=seconds,
        seed=seed,
        jobs=jobs,
        positions=positions,
        train=train,
        state=state,
    )
    require(
        figure is None or Path(figure).suffix in FIGURES,
        f"the figure is a {', '.join(FIGURES)} file, not {figure}",
    )
    check_can_write(figure, "--figure (in Python figure=)")
    check_can_draw(figure)
    check_room(TO_TRAIN, "a probe")
    check_can_write(state, "--state (in Python state=)")
    if data and all(isinstance(each, str | Path) for each in data):
        inputs, targets, mask = read(data, inputs, targets, mask, sequence)
    else:
        inputs, targets = _arrays(data, inputs, targets)
        require(sequence is None, "sequence names a column of a file; these data are arrays")
    require(
        (inputs is None) == (targets is None) and (target is None) == (sampler is None),
        "give inputs and targets, or a target function and its sampler",
    )
    found = "there is neither" if inputs is None else "not both"
    require((inputs is None) != (target is None), f"give either data or a function; {found}")
    request = _Request(
        clock=Clock(seconds, on_progress),
        max_heads=max_heads,
        kind=kind,
        positions=positions,
        heads_only=heads_only,
        seed=seed,
        state=state,
        jobs=jobs,
    )
    with computing_on(device):
        if target is not None and sampler is not None:
            finding = _probe_function(TargetFunction(target, sampler), train, request)
        else:
            finding = _probe_samples(Samples.of(inputs, targets, mask, kind), request)
    if figure is not None:
        finding.figure(figure)
    return finding


def _arrays(data: tuple[Any, ...], inputs: Any, targets: Any) -> tuple[Any, Any]:
    """Inputs and targets, which may be given by position or by name."""
    require(len(data) <= 2, "give inputs and targets, or files; not more")
    by_name = (inputs, targets)
    require(
        all(each is None for each in by_name[: len(data)]),
        "inputs and targets are given by position or by name, not both",
    )
    first, second = (*data, *by_name[len(data) :])
    return first, second


@dataclass(frozen=True)
class _Request:
    """What the user wants, beside the task."""

    clock: Clock
    max_heads: int
    kind: Kind | None
    positions: bool | None
    heads_only: bool
    seed: int
    state: str | Path | None
    jobs: int | None


def _probe_function(function: TargetFunction, train: bool | None, request: _Request) -> Finding:
    seed, clock = request.seed, request.clock
    clock.on_progress(0.0, "counting influential tokens")
    few = function.draw(512, (seed, _DRAW))
    if (function(few).std(0) == 0).all():
        return refuse("the target is constant: it needs no head at all", "another target")
    try:
        counting = _count(function, seed)
    except InputError:
        if train is False:
            raise
        counting = None  # what was drawn can be asked about; steps away from it cannot
    settled = counting is not None and counts_heads(*counting)
    if counting is not None and not train and (train is False or settled):
        counted, invariance, extremum = counting
        return conclude(counted=counted, invariance=invariance, extremum=extremum, clock=clock)
    drawn = function.draw(DRAWN_SAMPLES, (seed, _DRAW, 1))
    samples = Samples.of(drawn, function.as_given(function(drawn)), None, request.kind)
    if counting is None:
        return _probe_samples(samples, request)
    unordered = counting.invariance.permutations
    finding = _probe_samples(samples, replace(request, positions=not unordered), counting)
    lengths = train is True and unordered and samples.kind == "regression"
    if finding.heads is None or not lengths:
        return finding
    trend = measure_lengths(function, drawn, finding.heads, seed, clock, request.jobs)
    return with_lengths(finding, trend)


class Counting(NamedTuple):
    """What counting influential tokens gave."""

    counted: Sensitivity
    invariance: Invariance
    extremum: Extremum | None


def _count(function: TargetFunction, seed: int) -> Counting:
    counted = measure_sensitivity(function, seed)
    invariance = look_at_shorter(function, counted, seed)
    extremum = None
    fair = invariance.permutations or counted.method != "copies"  # a copy stands elsewhere
    if counted.sparse and fair and not invariance.grows_with_length:
        extremum = examine_extremum(function, counted, invariance.permutations, seed)
    return Counting(counted, invariance, extremum)


def _probe_samples(
    samples: Samples, request: _Request, counting: Counting | None = None
) -> Finding:
    few = too_few(samples)
    if few is not None:
        return refuse(*few)
    if samples.constant:
        return refuse("the target is constant: it needs no head at all", "another target")
    seed, clock = request.seed, request.clock
    DescentFile(request.state, "")  # a file that is no state is said before any work
    clock.compile()
    positions = request.positions
    if positions is None:
        positions, data = choose_positions(samples, seed, clock)
    else:
        data = prepare(samples, seed, positions)
    finding, error = _train(samples, data, positions, request, counting)
    little = LITTLE_LEFT if data.loss == "mse" else LITTLE_LEFT_OF_LABELS
    tried = request.positions is not None or positions or error < little
    if finding.heads is None and not tried and not clock.over:
        enough = POSITIONS_PAY * error
        data = prepare(samples, seed, positions=True)
        other, error = _train(samples, data, True, request, counting, enough)
        finding = other if other.heads is not None and error < enough else finding
    deeper = request.positions is not False and not request.heads_only
    if finding.heads is None and deeper and error > LARGEST_FLOOR:
        ordered = data if data.ordered_dims else prepare(samples, seed, positions=True)
        finding = with_depth(finding, error, try_second_layer(ordered, seed, clock))
    return finding


def _train(
    samples: Samples,
    data: Prepared,
    positions: bool,
    request: _Request,
    counting: Counting | None,
    most_error: float = 1.0,
) -> tuple[Finding, float]:
    """What training says, and the error that it reached; longer training only from `most_error`."""
    state = DescentFile(request.state, f"{samples.fingerprint}, positions {positions}")
    most, seed, clock = request.max_heads, request.seed, request.clock
    transition = find_transition(data, most, seed, clock, state, request.jobs, most_error)
    counted, invariance, extremum = counting or (None, None, None)
    finding = conclude(
        counted=counted,
        invariance=invariance,
        extremum=extremum,
        transition=transition,
        data=data,
        positions=positions,
        clock=clock,
    )
    if finding.heads is None or request.heads_only or not transition.learnt_with(finding.heads):
        return finding, transition.best
    wide = next((d for d in transition.descents if d.plan.head_dim == WIDE_HEAD_DIM), None)
    if wide is None:
        return finding, transition.best
    if not wide.networks:  # the state keeps errors, not networks: the same plan gives the same
        wide = descend(data, wide.plan, clock)
    found = measure_head_dim(data, wide, finding.heads, wide.plan.tuning_steps, clock)
    return with_head_dim(finding, found), transition.best
