"""CPU seconds until headwise is there: `import headwise`, `headwise --help`, and each door of it.

    python benchmarks/speed/start.py

Each line is a fresh interpreter, the smallest of three runs, with what Python itself takes. The bar
for `import headwise` is 0.3 seconds; what loads torch costs what torch costs.
"""

import resource
import subprocess
import sys

LINES = {
    "python": "",
    "import headwise": "import headwise",
    "headwise --help": "import sys; sys.argv[1:] = ['--help']; import headwise.__main__",
    "headwise.theory": "import headwise; headwise.theory",
    "import torch": "import torch",
    "headwise.train": "import headwise; headwise.train",
}


def cpu_seconds(code: str) -> float:
    """CPU time of an interpreter that runs the code, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    for name, code in LINES.items():
        print(f"{name:20} {min(cpu_seconds(code) for _ in range(3)):6.2f} CPU-seconds")


if __name__ == "__main__":
    main()
