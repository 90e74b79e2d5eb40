"""Memory of a process that trains: in huge pages where the system gives them, and none too much."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from pathlib import Path
import torch
from headwise.training import keep_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

before = resident()
keep_freed_memory()
assert resident() - before < 1 << 26, "what is asked for is not taken"
numbers, flags, inside = torch.ones(1 << 24), None, False
for line in Path("/proc/self/smaps").read_text().splitlines():
    words = line.split()
    if "-" in words[0] and not words[0].endswith(":"):
        first, last = (int(place, 16) for place in words[0].split("-"))
        inside = first <= numbers.data_ptr() + (1 << 25) < last
    elif inside and words[0] == "VmFlags:":
        flags = words[1:]
assert "hg" in flags, flags
"""


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="no huge pages here"
)
def test_tensors_lie_in_memory_for_which_huge_pages_are_asked() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)
