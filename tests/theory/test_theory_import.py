"""The theory is light: no torch, and no scipy before it is needed."""

import subprocess
import sys


def test_importing_the_theory_imports_neither_torch_nor_scipy() -> None:
    code = (
        "import sys, headwise.theory.rank, headwise.theory.head_count; "
        "import headwise.theory.saturation, headwise.theory.allocation; "
        "print(sorted({'torch', 'scipy', 'pandas', 'numba'} & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
