"""How many attention heads does a task, or a model, need; how wide; and in which layers?"""

from importlib.metadata import version
from typing import Any

__version__ = version("headwise")


def __getattr__(name: str) -> Any:
    """`headwise.from_pretrained`, imported when asked for: it brings torch and transformers."""
    if name == "from_pretrained":
        from headwise.pretrained import from_pretrained

        return from_pretrained
    raise AttributeError(f"module 'headwise' has no attribute {name!r}")
