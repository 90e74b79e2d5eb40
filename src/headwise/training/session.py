"""Which networks are trained together, where, and who is told of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from headwise.core.progress import OnProgress, quiet
from headwise.training.checkpoint import Checkpoint


@dataclass(frozen=True)
class Session:
    """One network a seed, on a device; `file` is where a killed training finds its state again.

    None of it changes an outcome, which depends on (task, shape, training, seed) alone.
    """

    seeds: Sequence[int]
    on_progress: OnProgress = quiet
    device: str = "cpu"
    file: Checkpoint = field(default_factory=lambda: Checkpoint(None))
