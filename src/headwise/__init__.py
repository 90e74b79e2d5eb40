"""How many attention heads does a task, or a model, need; how wide; and in which layers?"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

__version__ = version("headwise")

# Loaded when first used, so that `import headwise` and headwise.theory stay light.
_LAZY = {
    "probe": "headwise.advise.probe",
    "plan": "headwise.advise.plan",
    "from_pretrained": "headwise.pretrained",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'headwise' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
