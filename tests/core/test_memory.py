"""Room is asked for before the work: without it, libraries would end the process unsaid."""

import subprocess
import sys

import pytest

GIGABYTE = 2**30

LIMITED = """
import resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
from headwise.cli import main
main(sys.argv[2:])
"""


def under(limit: int, command: str) -> tuple[int, str]:
    """The exit code and the sentence of a command that may have so many bytes of addresses."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *command.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit addresses")
@pytest.mark.parametrize(
    ("gigabytes", "command", "what"),
    [
        (3, "bound phase-map --intrinsic-dim 2 --head-dim 2 --lengths 8 --out {out}", "drawing"),
        (3, "build retrieval --error 0.5 --seconds 1 --out {out}", "drawing"),
        (3, "plan --layers 1 --width 8 --length 4 --budget 999 --report {out}.html", "drawing"),
        (0.5, "build retrieval --error 0.5 --seconds 1 --out {out}", "loading torch"),
        (0.4, "bound phase-map --intrinsic-dim 2 --head-dim 2 --lengths 8", "loading pandas"),
        (1.3, "probe {out} --seconds 1", "a probe"),
        (1.6, "inspect {out} --tokens 20", "opening a model"),
    ],
)
def test_too_few_addresses_get_a_sentence_before_the_work(
    gigabytes: float, command: str, what: str, tmp_path: object
) -> None:
    code, said = under(int(gigabytes * GIGABYTE), command.format(out=f"{tmp_path}/new"))
    assert code == 5, said
    assert f"{what}" in said.splitlines()[-1]
    assert "GiB of address space" in said.splitlines()[-1]
