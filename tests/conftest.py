"""Shapes in the types are checked wherever a test goes."""

from jaxtyping import install_import_hook

CHECKED = [
    "headwise.nets",
    "headwise.build",
    "headwise.training.ensemble",
    "headwise.training.stacked",
]
install_import_hook(CHECKED, "checked_shapes.check")
