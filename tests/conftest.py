"""Shapes in the types are checked wherever a test goes."""

from jaxtyping import install_import_hook

CHECKED = [f"headwise.{room}" for room in ("tasks", "nets", "build", "advise")]
install_import_hook(CHECKED, "beartype.beartype")
