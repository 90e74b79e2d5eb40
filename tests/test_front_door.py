"""What `import headwise` offers, and what it does not cost."""

import ast
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

import headwise

FUNCTIONS = ("probe", "plan", "inspect", "compress", "from_pretrained", "train", "run_study")
ROOMS = ("theory", "tasks", "nets", "build")
HEAVY = ("torch", "numba", "numpy", "scipy", "pandas", "altair", "transformers", "typer")


def imported_after(statement: str) -> set[str]:
    """The packages that a fresh interpreter holds after a statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(ran.stdout.splitlines()[-1])}


def test_importing_headwise_imports_nothing_heavy() -> None:
    assert imported_after("import headwise; dir(headwise)") & set(HEAVY) == set()


def test_the_theory_needs_no_torch() -> None:
    used = "import headwise; headwise.theory.head_count.heads_needed(intrinsic_dim=4)"
    assert imported_after(used) & {"torch", "pandas", "numba"} == set()


def test_help_and_version_import_no_torch() -> None:
    for option in ("--help", "--version"):
        statement = (
            f"import headwise.cli\ntry: headwise.cli.main(['{option}'])\nexcept SystemExit: pass"
        )
        assert imported_after(statement) & {"torch", "numba", "pandas", "scipy"} == set(), option


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_there_and_documented(name: str) -> None:
    function = getattr(headwise, name)
    assert callable(function)
    assert not isinstance(function, ModuleType)
    assert function.__doc__


@pytest.mark.parametrize("name", ROOMS)
def test_rooms_are_attributes(name: str) -> None:
    room = getattr(headwise, name)
    assert isinstance(room, ModuleType)
    assert room.__name__ == f"headwise.{name}"


def test_dir_and_all_list_them() -> None:
    assert set(headwise.__all__) == {*FUNCTIONS, *ROOMS}
    assert {*FUNCTIONS, *ROOMS, "__version__"} == set(dir(headwise))


def test_importing_the_modules_does_not_shadow_the_functions() -> None:
    code = (
        "import headwise, headwise.advise.plan, headwise.advise.probe, headwise.pretrained\n"
        "import headwise.training, headwise.studies\n"
        "from types import ModuleType\n"
        f"for name in {FUNCTIONS}:\n"
        "    found = getattr(headwise, name)\n"
        "    assert callable(found) and not isinstance(found, ModuleType), name\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_no_module_is_called_like_a_function_of_the_front_door() -> None:
    package = Path(headwise.__file__).parent
    for name in FUNCTIONS:
        assert not (package / name).exists()
        assert not (package / f"{name}.py").exists()


def test_a_type_checker_sees_the_same_places() -> None:
    """The imports under TYPE_CHECKING and the table of places name the same things."""

    tree = ast.parse(Path(headwise.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            whole = node.module == "headwise"
            typed[alias.name] = f"{node.module}{'.' if whole else ':'}{alias.name}"
    assert typed == headwise._PLACES
    assert typed.keys() == set(headwise.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = headwise.nothing


def test_the_version_is_the_installed_one() -> None:
    assert headwise.__version__ == version("headwise")
    ran = subprocess.run(
        [sys.executable, "-m", "headwise", "--version"], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, f"headwise {headwise.__version__}\n")
