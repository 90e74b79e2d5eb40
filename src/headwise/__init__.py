"""How many attention heads does a task, or a model, need; how wide; and in which layers?

    headwise.probe(inputs, targets)          how many heads a task needs
    headwise.plan(layers=6, ...)             which heads and dimensions in which layer
    headwise.inspect("model")                what each head of a pretrained model needs
    headwise.compress("model", keep=0.75)    a smaller model, and what it cost
    headwise.from_pretrained("smaller")      open it again
    headwise.train(task, shape, ...)         many networks as one program
    headwise.run_study("head-count")         a published experiment, rerun
    headwise.theory  .tasks  .nets  .build   bounds, tasks, networks, networks from a proof

Every command has such a function; `headwise COMMAND --help` names it.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from headwise.core.lazy import named

if TYPE_CHECKING:  # for type checkers and editors; the same places as below
    from headwise import build, nets, tasks, theory
    from headwise.advise.plan import plan
    from headwise.advise.probe import probe
    from headwise.pretrained import compress, from_pretrained, inspect
    from headwise.studies import run_study
    from headwise.training import train

__all__ = [
    "build",
    "compress",
    "from_pretrained",
    "inspect",
    "nets",
    "plan",
    "probe",
    "run_study",
    "tasks",
    "theory",
    "train",
]

__version__ = version("headwise")

# Imported when first used: `import headwise` loads neither torch nor pandas.
_PLACES = {
    "build": "headwise.build",
    "compress": "headwise.pretrained:compress",
    "from_pretrained": "headwise.pretrained:from_pretrained",
    "inspect": "headwise.pretrained:inspect",
    "nets": "headwise.nets",
    "plan": "headwise.advise.plan:plan",
    "probe": "headwise.advise.probe:probe",
    "run_study": "headwise.studies:run_study",
    "tasks": "headwise.tasks",
    "theory": "headwise.theory",
    "train": "headwise.training:train",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'headwise' has no attribute {name!r}")
    return named(_PLACES[name])


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
