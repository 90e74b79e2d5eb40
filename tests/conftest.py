"""Shapes in the types are checked wherever a test goes.

Modules of specifications are left out: their constructors check values themselves, with a
sentence, and the type checker would come first.
"""

from jaxtyping import install_import_hook

CHECKED = [
    "headwise.nets.class_token",
    "headwise.nets.module",
    "headwise.build",
    "headwise.theory.allocation.profile",
    "headwise.theory.rank.harmonics",
    "headwise.pretrained.adapters",
    "headwise.pretrained.measure",
    "headwise.pretrained.model",
    "headwise.pretrained.plan.reductions",
    "headwise.training.ensemble",
    "headwise.training.stacked",
]
install_import_hook(CHECKED, "beartype.beartype")
