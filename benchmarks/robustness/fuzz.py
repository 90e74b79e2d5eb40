"""Malformed input of every kind into every command: a table of input class × outcome.

    python benchmarks/robustness/fuzz.py                # 600 inputs
    python benchmarks/robustness/fuzz.py --inputs 60    # a few
    python benchmarks/robustness/fuzz.py --only npz     # of some classes
    python benchmarks/robustness/fuzz.py --every        # of the hostile ones, which are listed, all

Hypothesis draws the inputs: options of every command, and damaged, foreign or absurd files of every
kind that a command reads. The outcome is the exit code (docs/exit-codes.md); a traceback, an answer
that takes longer than a minute and a code that means nothing are defects. Exit code 1: there were
defects, which are printed whole.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from malformed import ANSWERS, DEFECTS, OUTCOMES, Case, classes

ENOUGH = 10_000  # draws: Hypothesis draws no input twice, and stops after the last


def outcomes(
    cases: SearchStrategy[Case], count: int, number: int, on_case: Callable[[Case, str, str], None]
) -> None:
    """Draw so many cases and run them."""

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def each(case: Case) -> None:
        on_case(case, *case.run())

    each()


def main() -> int:
    """Print the table, and every defect."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="classes whose name holds this")
    parser.add_argument("--every", action="store_true", help="all inputs of listed classes")
    options = parser.parse_args()
    defects: list[str] = []
    total: Counter[str] = Counter()
    print(f"{'':28}" + "".join(f"{name:>12}" for name in OUTCOMES))
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HEADWISE_CACHE": f"{folder}/cache", "HEADWISE_ENGINE": "stacked"}
        os.environ["HF_HUB_OFFLINE"] = "1"
        every = [each for each in classes(Path(folder)) if options.only in each.name]
        for number, input_class in enumerate(every):
            seen: Counter[str] = Counter()

            def on_case(
                case: Case,
                outcome: str,
                said: str,
                seen: Counter[str] = seen,
                unusable: bool = input_class.unusable,
            ) -> None:
                if unusable and outcome in ANSWERS:
                    outcome = "nonsense"
                seen[outcome] += 1
                if outcome in DEFECTS:
                    defects.append(f"{' '.join(case.arguments)[:300]}\n{said[-1500:]}")
                    print(f"--- {outcome}: {defects[-1]}", file=sys.stderr, flush=True)

            count = -(-options.inputs // len(every))
            if options.every and input_class.name.startswith("hostile"):
                count = ENOUGH
            outcomes(input_class.cases, count, options.seed + number, on_case)
            total += seen
            print(
                f"{input_class.name:28}" + "".join(f"{seen[name]:12}" for name in OUTCOMES),
                flush=True,
            )
    print(f"{f'all {sum(total.values())}':28}" + "".join(f"{total[name]:12}" for name in OUTCOMES))
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
