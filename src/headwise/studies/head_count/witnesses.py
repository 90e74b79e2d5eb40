"""What too few heads confuse, next to what training reached, over the number of heads."""

from collections.abc import Sequence
from math import inf

from headwise.build import WitnessComparison, compare_witnesses, retrieval
from headwise.core.device import find_device
from headwise.core.errors import require
from headwise.core.progress import OnProgress, part_of, quiet
from headwise.nets import ClassTokenNet, ClassTokenShape
from headwise.tasks import Retrieval
from headwise.theory.checks import positive, whole
from headwise.training import Training, train

_BUILT_ERROR = 1e-3  # certified, of the networks that stand beside the trained ones
_TRAINING_SHARE = 0.8  # of the time, about


def trained_witnesses(
    task: Retrieval,
    heads: Sequence[int] = (1, 2, 3, 4, 5),
    *,
    steps: int = 8_000,
    seeds: int = 2,
    reach: float | None = 0.3,
    search_steps: int = 150,
    seed: int = 0,
    device: str = "cpu",
    on_progress: OnProgress = quiet,
) -> WitnessComparison:
    """Train networks of the paper's shape, the best of `seeds` for each number of heads, and look
    for a witness against each.

    Where the heads are enough, a built network of as many heads stands beside the trained one.
    Training runs on the `device` auto, cpu, cuda or mps. `reach`, `search_steps` and `seed` are of
    the search; see `headwise.build.witness`.
    """
    require(seeds >= 1, f"seeds is {seeds}; the least is 1")
    whole("search_steps", search_steps, least=2)  # what the search would refuse after the training
    whole("seed", seed, least=0)
    if reach is not None:
        positive("reach", reach)
    place = find_device(device)
    trained = {}
    for done, count in enumerate(heads):
        first, last = (_TRAINING_SHARE * n / len(heads) for n in (done, done + 1))
        part = part_of(on_progress, first, last, f"training {count} heads")
        trained[count] = _best_trained(task, count, steps, seeds, place, part)
    enough = [count for count in heads if count >= task.intrinsic_dim]
    built = {count: retrieval(task, _BUILT_ERROR, heads=count).net for count in enough}
    return compare_witnesses(
        {"trained": trained} | ({"built": built} if built else {}),
        task,
        seed=seed,
        reach=reach,
        steps=search_steps,
        on_progress=part_of(on_progress, _TRAINING_SHARE, 1.0),
    )


def _best_trained(
    task: Retrieval, heads: int, steps: int, seeds: int, device: str, on_progress: OnProgress
) -> ClassTokenNet:
    def report(fraction: float, doing: str = "") -> None:
        on_progress(fraction, "")

    shape = ClassTokenShape.standard(token_dim=task.token_dim, heads=heads)
    training = Training(steps=steps, rate=1e-2)
    outcomes = train(task, shape, training, range(seeds), report, device=device)
    best = min(outcomes, key=lambda each: inf if each.error is None else each.error)
    return ClassTokenNet(shape, best.params)
