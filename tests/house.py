"""The package as text: its modules, what they import and what they define. Nothing is executed."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

ROOMS = (
    "core",
    "theory",
    "tasks",
    "nets",
    "allocation",
    "build",
    "training",
    "lab",
    "studies",
    "advise",
    "pretrained",
    "report",
    "cli",
)
"""Left to right: a module imports from its own room and from rooms on its left."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Import:
    """An import of something of headwise."""

    target: str  # a module
    line: int
    inside: str  # the function that it stands in; "" at the top of the module


@dataclass(frozen=True)
class Module:
    """A file of the package."""

    name: str
    path: Path

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def is_private(self) -> bool:
        return any(part.startswith("_") for part in self.name.split("."))

    @property
    def room(self) -> str:
        """'' for the front door."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 and parts[1] in ROOMS else ""

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def place(self, line: int) -> str:
        """Where a person finds it."""
        return f"{self.path.relative_to(ROOT)}:{line}"

    def definitions(self) -> Iterator[Definition]:
        """Functions and classes at the top of the module."""
        for node in self.tree.body:
            if isinstance(node, Definition):
                yield node

    def bound(self) -> dict[str, ast.stmt]:
        """Names that exist after the module was imported, with what binds them."""
        names: dict[str, ast.stmt] = {}
        for node in self._statements(self.tree.body):
            if isinstance(node, Definition):
                names[node.name] = node
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names |= {a.asname or a.name.partition(".")[0]: node for a in node.names}
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {t.id: node for t in targets if isinstance(t, ast.Name)}
        return names

    def _statements(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            yield node
            if isinstance(node, ast.If | ast.Try):
                yield from self._statements(node.body)


def _modules() -> dict[str, Module]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path)
    return found


MODULES = _modules()


def imports(module: Module) -> Iterator[Import]:
    """What a module imports of headwise: modules, not names."""
    yield from _imports(module, module.tree, "")


def _imports(module: Module, node: ast.AST, inside: str) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                if alias.name in MODULES:
                    yield Import(alias.name, child.lineno, inside)
        elif isinstance(child, ast.ImportFrom):
            source = absolute(module, child)
            if source in MODULES:
                for alias in child.names:
                    whole = f"{source}.{alias.name}"
                    target = whole if whole in MODULES else source
                    yield Import(target, child.lineno, inside)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _imports(module, child, getattr(child, "name", "lambda"))
        else:
            yield from _imports(module, child, inside)


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """The module that a `from … import` reads from."""
    if node.level == 0:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def find(place: str) -> ast.AST | None:
    """What 'module:name' or 'module:Class.method' names, through re-exports; None if nothing."""
    module, _, name = place.partition(":")
    if module not in MODULES:
        return None
    if not name:
        return MODULES[module].tree
    if module == "headwise":
        return find(front_door().get(name, ""))
    first, _, rest = name.partition(".")
    node: ast.AST | None = MODULES[module].bound().get(first)
    if isinstance(node, ast.ImportFrom):
        source = absolute(MODULES[module], node)
        original = next(a.name for a in node.names if (a.asname or a.name) == first)
        if f"{source}.{original}" in MODULES:
            return MODULES[f"{source}.{original}"].tree
        node = find(f"{source}:{original}") if source in MODULES else node
    if rest and isinstance(node, ast.ClassDef):
        return next((n for n in node.body if isinstance(n, Definition) and n.name == rest), None)
    return None if rest else node


def front_door() -> dict[str, str]:
    """The names of `import headwise` and the places that they come from."""
    node = MODULES["headwise"].bound()["_PLACES"]
    assert isinstance(node, ast.Assign)
    places: dict[str, str] = ast.literal_eval(node.value)
    return places


def parameters(node: ast.AST) -> set[str]:
    """The parameters of a function."""
    assert isinstance(node, ast.FunctionDef)
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    every += [each for each in (node.args.vararg, node.args.kwarg) if each]
    return {argument.arg for argument in every}


def none(violations: list[str], remedy: str) -> None:
    """Fail with the list of what breaks a rule."""
    assert not violations, "\n  " + "\n  ".join([remedy, *violations])
