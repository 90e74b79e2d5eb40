"""Shapes in the types are checked wherever a test goes."""

from jaxtyping import install_import_hook

CHECKED = [
    "headwise.nets",
    "headwise.tasks",
    "headwise.build",
    "headwise.training._train",
    "headwise.training.adamw",
    "headwise.training.ensemble",
    "headwise.training.outcome",
    "headwise.training.samples",
    "headwise.training.schedule",
    "headwise.training.state",
    "headwise.training.stream",
    "headwise.training.text",
]
install_import_hook(CHECKED, "checked_shapes.check")
