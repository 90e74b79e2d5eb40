"""Shapes in the types are checked wherever a test goes.

Modules of specifications are left out: their constructors check values themselves, with a
sentence, and the type checker would come first.
"""

from jaxtyping import install_import_hook

CHECKED = [
    "headwise.nets.class_token",
    "headwise.nets.module",
    "headwise.build",
    "headwise.training.ensemble",
    "headwise.training.stacked",
    "headwise.allocation.cut",
    "headwise.advise.probe.samples.prepare",
    "headwise.advise.probe.counting",
    "headwise.advise.probe.descent.removal",
    "headwise.advise.probe.descent.network",
]
install_import_hook(CHECKED, "beartype.beartype")
