"""A hook of MkDocs: fills the API reference's page of a room with the room's modules.

A page `api/ROOM.md` holds a title and a sentence. Here every public module of the room is appended
to it, so that a new module is in the reference without anyone writing it down. A package shows what
it re-exports from private modules only: everything else is shown where it is defined.
"""

import ast
import re
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs with every page, before it is rendered."""
    room = re.fullmatch(r"api/(\w+)\.md", page.file.src_uri)
    if room is None or room[1] == "index":
        return markdown
    paths = sorted((SOURCE / "headwise" / room[1]).rglob("*.py"), key=_order)
    return "\n\n".join([markdown, *(_section(path) for path in paths if _public(path))])


def _order(path: Path) -> tuple[str, ...]:
    """A package before its modules."""
    return path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts


def _public(path: Path) -> bool:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return not any(part.startswith("_") for part in parts if part != "__init__")


def _section(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if package else parts)
    lines = [f"::: {name}", "    options:", "      show_root_heading: true"]
    if package:
        lines.append(f"      members: {_from_private_modules(path)}")
    return "\n".join(lines)


def _from_private_modules(path: Path) -> list[str]:
    """The names that a package re-exports from modules that have no section of their own."""
    names = []
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and "._" in node.module:
            names += [alias.asname or alias.name for alias in node.names]
    return names
