"""Which heads and dimensions in which layer? From theory alone, or measured on the user's data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwise.advise.plan.default import default_plan
from headwise.advise.plan.measured import measured_plan
from headwise.advise.plan.request import PlanRequest
from headwise.allocation.plan_file import AllocationPlan, write_allocation
from headwise.core.errors import require
from headwise.core.files import check_can_write, check_page
from headwise.core.lazy import named
from headwise.core.progress import OnProgress, quiet
from headwise.lab.crew import LOCAL, Place
from headwise.tasks.language import Language
from headwise.tasks.token_arrays import TokenArray

UNSEEN = 0.1  # of the data: what the allocation study holds out, so that it can score a plan there


def plan(
    *,
    layers: int,
    width: int,
    length: int,
    budget: int,
    text: str | Path | None = None,
    data: str | Path | None = None,
    intrinsic_dim: int | None = None,
    multiple: int = 4,
    seconds: float = 600.0,
    seed: int = 0,
    out: str | Path | None = None,
    report: str | Path | None = None,
    store: str | Path = "headwise.db",
    jobs: int | None = None,
    on: str = LOCAL,
    gpus_per_job: float = 0.0,
    device: str = "cpu",
    on_progress: OnProgress = quiet,
) -> AllocationPlan:
    """Share a budget of attention parameters out over layers, heads and dimensions.

    Without data: the theory's default, unchecked; `intrinsic_dim` is how many features the target
    extracts, if that is known. With `text` (a file, read as bytes) or `data` (an .npz of token
    numbers: a stream, or sequences): short trainings of the published schedules and of the
    solver's own, and a comparison with uniform. The last tenth of the data is not looked at: there
    a plan can be scored, by the study `allocation` or by yourself, that was not chosen there.

    `budget` counts attention parameters of all layers, without biases; `length` is the tokens in
    a context; head dimensions are multiples of `multiple`. `seconds` are for measuring, on cores
    of usual speed; when they are over, what is known decides. `store` is the SQLite file that
    keeps trials, so that a stopped plan goes on. The plan is written to the JSON file `out`, if
    there is one, and a page about it to the .html file `report`. Equal seeds, equal plans.

    `jobs` trainings run at once, as many as cores by default, where `on` says: "local", "ray"
    (started here) or "ray:ADDRESS", a cluster, there with `gpus_per_job` of a GPU; on the `device`
    auto, cpu, cuda or mps. Trainings that fail three times raise `RunsFailed`.
    """
    require(
        text is None or data is None, "give --text or --data, not both (in Python text= or data=)"
    )
    check_can_write(out, "--out (in Python out=)")
    check_page(report, "--report (in Python report=)")
    request = PlanRequest(
        layers=layers,
        width=width,
        length=length,
        budget=budget,
        intrinsic_dim=intrinsic_dim,
        multiple=multiple,
        seconds=seconds,
        seed=seed,
        place=Place(on, jobs, gpus_per_job, device),
    )
    task_at = _task(text, data)
    if task_at is None:
        made = default_plan(request)
    else:
        made = measured_plan(request, task_at, Path(store), on_progress)
    if out is not None:
        write_allocation(made, out)
    if report is not None:
        named("headwise.report.result_page:write_page")(made, report)
    return made


def _task(text: str | Path | None, data: str | Path | None) -> Callable[[int], Any] | None:
    """The task at a length, from the file that there is, whose end is left for others to score."""
    if text is not None:
        return lambda length: Language.from_file(Path(text), length, unseen=UNSEEN)
    if data is not None:
        return lambda length: TokenArray.from_file(Path(data), length, unseen=UNSEEN)
    return None
