"""The house's rules, checked on the text of the package: see CONTRIBUTING.md.

Each test lists every violation with its place, and says what to do about it.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from house import MODULES, ROOMS, ROOT, SOURCE, find, imports, none

MOST_MODULES = 15
MOST_LINES = 300
ONE_IDEA = (
    "src/headwise/training/fused",
)  # a folder that may be larger: one kernel, cut into its pieces

EVERY = list(MODULES.values())
PUBLIC = [module for module in EVERY if not module.is_private]


def test_imports_go_left() -> None:
    wrong = [
        f"{module.place(each.line)}: {module.room} imports {each.target}"
        for module in EVERY
        for each in imports(module)
        if module.room and (room := MODULES[each.target].room)
        if ROOMS.index(room) > ROOMS.index(module.room)
    ]
    none(wrong, "move what is shared to a room on the left, or the user of it to the right:")


IN_ROOMS = [
    (module, each)
    for module in EVERY
    if module.room not in ("", "cli")  # these two import late, and each other
    for each in imports(module)
]


def test_rooms_do_not_use_the_front_door() -> None:
    wrong = [module.place(each.line) for module, each in IN_ROOMS if each.target == "headwise"]
    none(wrong, "import from the room, not through the front door:")


def test_no_headwise_imports_inside_functions() -> None:
    late = [(module.place(each.line), each) for module, each in IN_ROOMS if each.inside]
    wrong = [f"{place}: {each.inside} imports {each.target}" for place, each in late]
    none(wrong, "import at the top of the module; only the command line imports when run:")


def test_no_module_cycles() -> None:
    edges = {
        module.name: sorted({e.target for e in imports(module) if not e.inside} - {module.name})
        for module in EVERY
        if module.name != "headwise"
    }
    cycles = [" → ".join(group) for group in _cycles(edges)]
    none(cycles, "these modules import each other; move what both need to a third:")


def _cycles(edges: dict[str, list[str]]) -> Iterator[list[str]]:
    """A cycle of each knot of modules that reach each other (depth-first search)."""
    finished: set[str] = set()

    def walk(name: str, path: list[str]) -> Iterator[list[str]]:
        if name in path:
            yield [*path[path.index(name) :], name]
            return
        if name in finished:
            return
        for target in edges.get(name, []):
            yield from walk(target, [*path, name])
        finished.add(name)

    for name in edges:
        yield from walk(name, [])


def test_no_two_classes_share_a_name() -> None:
    places = defaultdict(list)
    for module in EVERY:
        for node in module.definitions():
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.place(node.lineno))
    wrong = [f"{name}: {', '.join(where)}" for name, where in places.items() if len(where) > 1]
    none(wrong, "one word, one thing; rename all but one of:")


CLASSES = {
    node.name: (module, node)
    for module in EVERY
    for node in module.definitions()
    if isinstance(node, ast.ClassDef)
}


def test_public_names_have_docstrings() -> None:
    wrong = [f"{m.place(1)}: the module" for m in EVERY if not ast.get_docstring(m.tree)]
    for module in PUBLIC:
        for node in module.definitions():
            if not node.name.startswith("_") and not ast.get_docstring(node):
                wrong.append(f"{module.place(node.lineno)}: {node.name}")
    none(wrong, "say in a sentence what it is:")


def test_public_methods_have_docstrings() -> None:
    wrong = [
        f"{module.place(method.lineno)}: {node.name}.{method.name}"
        for module in PUBLIC
        for node in module.definitions()
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for method in node.body
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
        if not ast.get_docstring(method)
        and not any(_documents(b, method.name) for b in _bases(node))
    ]
    none(wrong, "say in a sentence what it gives, unless a class above says it:")


def _bases(node: ast.ClassDef) -> set[str]:
    """The names of what a class inherits from; `nn.Module` is 'Module'."""
    whole = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return {ast.unparse(base).rpartition(".")[2] for base in whole}


def _documents(base: str, method: str) -> bool:
    """Does the class, or one that it inherits from, say what the method does?"""
    if base == "Module":  # torch's: every module has `forward`
        return method == "forward"
    if base not in CLASSES:
        return False
    _, node = CLASSES[base]
    own = (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == method)
    if any(ast.get_docstring(each) for each in own):
        return True
    return any(_documents(each, method) for each in _bases(node))


def test_no_package_shadows_its_modules() -> None:
    wrong = []
    for module in EVERY:
        if not module.is_package:
            continue
        for name, node in module.bound().items():
            if f"{module.name}.{name}" not in MODULES:
                continue
            if find(f"{module.name}:{name}") is not MODULES[f"{module.name}.{name}"].tree:
                wrong.append(f"{module.place(node.lineno)}: {name}")
    none(wrong, "the package's name hides its module; call the module _name:")


FILES = sorted(
    path for top in ("src", "tests", "benchmarks") for path in (ROOT / top).rglob("*.py")
)


def test_no_folder_is_a_drawer() -> None:
    modules = Counter(path.parent for path in FILES if path.name != "__init__.py")
    wrong = [
        f"{name}: {count} modules"
        for folder, count in modules.items()
        if count > MOST_MODULES and (name := folder.relative_to(ROOT).as_posix()) not in ONE_IDEA
    ]
    none(wrong, f"more than {MOST_MODULES} modules in a folder; make folders in it:")


def test_no_module_is_long() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in FILES}
    wrong = [f"{p.relative_to(ROOT)}: {n} lines" for p, n in lengths.items() if n > MOST_LINES]
    none(wrong, f"more than {MOST_LINES} lines; a module is one idea:")


def _uses(pattern: str, home: str) -> list[str]:
    """Where code, not prose, matches a pattern outside its home."""
    found = []
    for module in EVERY:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute | ast.ImportFrom) and module.name != home:
                for line in ast.unparse(node).splitlines():
                    if re.search(pattern, line):
                        found.append(f"{module.place(node.lineno)}: {line}")
    return found


def test_there_is_one_atomic_write() -> None:
    pattern = r"^os\.(replace|rename)$|\b(mkstemp|mkdtemp|NamedTemporaryFile)$"
    none(_uses(pattern, "headwise.core.files"), "write through core.files.appearing:")


def test_there_is_one_t_interval() -> None:
    pattern = r"\bt\.(ppf|isf|interval)$|from scipy.stats import .*\bt\b"
    none(_uses(pattern, "headwise.core.intervals"), "use core.intervals.Interval.of:")


def test_there_is_one_cache_folder() -> None:
    pattern = r"HEADWISE_CACHE|XDG_CACHE_HOME"
    wrong = [
        module.place(node.lineno)
        for module in EVERY
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call | ast.Subscript | ast.Compare)
        if re.search(pattern, ast.unparse(node)) and module.name != "headwise.core.cache"
    ]
    none(wrong, "ask core.cache.cache_folder:")


PLAIN = {
    r"\bby heart\b": "overfits",
    r"\bignoran(t|ce)\b|\bknowing nothing\b": "baseline loss",
    r"\bby lot\b": "at random",
    r"\btokens? that asks?\b|\basking token|\b(class|last) token asks\b": "query token",
    r"\bdear(er|est)?\b": "expensive",
}


def test_prose_is_in_the_plain_english_of_the_field() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()} (say: {instead})"
        for path in [*(module.path for module in EVERY), *pages]
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for pattern, instead in PLAIN.items()
        if re.search(pattern, line, re.IGNORECASE)
    ]
    none(wrong, "a word that only this project uses for it:")


def test_names_in_strings_lead_somewhere() -> None:
    """'module:name' is how the front door and results reach to the right."""
    wrong = [
        f"{module.place(node.lineno)}: {node.value}"
        for module in EVERY
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"headwise(\.\w+)*:\w+(\.\w+)*", node.value)
        if find(node.value) is None
    ]
    none(wrong, "there is nothing of that name at:")


def test_the_map_in_contributing_is_the_real_one() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("## Where things are")[2].partition("\n## ")[0]
    drawn = re.findall(r"^      (\w+)/ +\S", section, re.MULTILINE)
    folders = {path.parent.name for path in (SOURCE / "headwise").glob("*/__init__.py")}
    assert tuple(drawn) == ROOMS, "the rooms in their order"
    assert set(drawn) == folders, "the folders of src/headwise"
    around = re.findall(r"^    ([\w./]+)/ +\S", section, re.MULTILINE)
    assert around
    assert [name for name in around if not (ROOT / name).is_dir()] == []


def test_the_tests_mirror_the_rooms() -> None:
    folders = {path.name for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py"))}
    assert folders <= {*ROOMS, "browser"}  # a real browser looks at the pages of all rooms
