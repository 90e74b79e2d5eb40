"""Odd and hostile checkpoints through every command; what is reported against an own evaluation.

    python benchmarks/pretrained/odd_models.py [--cases N] [--seed N] [--only NUMBER ...]
    python benchmarks/pretrained/odd_models.py --classes     # every class in `odd_classes`

Each case is a tiny checkpoint (see `odd_checkpoints`) and a command line. Outcomes:

- right: what was written opens again, keeps what was asked for, and its damage, by an own loop
  (`odd_judging`) on other text of the same kind, is the reported one within a factor of 1.5, or
  within the interval that was reported with it; in float32 where a warning says that the models'
  own precision adds to it;
- refused: a sentence, and nothing written; for a broken checkpoint that is what is right;
- wrong: written and not so, or ruined (no nearer to the original than one prediction for all
  inputs) without a warning, or a broken checkpoint that was accepted;
- traceback.

Exit code 1: something was wrong or ended in a traceback. (A machine that says it has AMX and has
not stops the process in torch's bfloat16; ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 helps.)
"""

import argparse
import contextlib
import io
import json
import math
import os
import random
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from scipy.stats import spearmanr

import headwise
from headwise.cli import main as command_line
from headwise.cli.ending import STOPPED
from headwise.pretrained.text.calibration import packaged_text
from odd_checkpoints import BROKEN, Case, drawn, write
from odd_classes import CLASSES, listed
from odd_judging import LENGTH, apart, not_cached, not_stock, passages, pictures

FACTOR = 1.5  # how far a reported damage may be from an own one
UNSEEN = 1e-4  # damage that nobody would see, whatever it is
METHODS = ("svd-llm", "modegpt", "taylor", "uniform-svd", "prune-heads", "random")


@dataclass
class Outcome:
    """What came of a case."""

    kind: str
    why: str = ""
    reported: float = math.nan
    own: float = math.nan
    nothing: float = math.nan

    def __str__(self) -> str:
        if math.isnan(self.own):
            return self.why
        numbers = f"{self.reported:.4g} reported, {self.own:.4g} own, {self.nothing:.3g} at most"
        return f"[{numbers}] {self.why}"


def texts(folder: Path) -> tuple[Path, list[str]]:
    """A file to give to the command, and passages of the same sources that are not in it."""
    plain = packaged_text("held_out").encode("ascii", "ignore").decode()[:400_000]
    stripped = map(str.strip, plain.splitlines())  # as documents are
    lines = [line for line in stripped if 60 <= len(line) <= 400]
    path = folder / "text.txt"
    path.write_text("\n<|endoftext|>\n".join(lines[::2]))
    return path, lines[1::2]


def asked(case: Case, seed: int) -> list[str]:
    """What the command is asked for."""
    rng = random.Random(f"{seed}-{case.number}-asked")
    keep = ["--keep", rng.choice(("0.9", "0.75", "0.5", "0.35"))]
    ways = [["inspect"], ["inspect", "--exact"]]
    ways += [["compress", *keep]] * 5 + [["compress", *keep, "--fast"]] * 2
    ways += [["compress", *keep, "--uniform"]] * 2 + [["compress", *keep, "--finetune", "12"]]
    ways += [["compress", *keep, "--method", method] for method in METHODS]
    ways += [["compress", "--kv-bytes", rng.choice(("24", "64", "160", "400"))]] * 2
    ways += [["compress", "--max-loss", rng.choice(("0.001", "0.05"))]]
    way = rng.choice(ways)
    return [*way, "--report", "page.html"] if rng.random() < 0.3 else way


def run(arguments: list[str]) -> tuple[int, str, str]:
    """Exit code, standard output and what was said on standard error."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command_line(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
    if code == STOPPED:
        raise KeyboardInterrupt
    return code, out.getvalue(), err.getvalue()


def tried(case: Case, arguments: list[str], folder: Path, text: Path, fresh: list[str]) -> Outcome:
    """Make the checkpoint, run the command, judge by an own loop."""
    model, out = folder / "model", folder / "out"
    write(case, model, text.read_text().replace("<|endoftext|>", ""))
    images = not (model / "tokenizer.json").exists()
    words = [arguments[0], str(model), *arguments[1:], "--json", "--no-cache"]
    words = [str(folder / word) if word == "page.html" else word for word in words]
    words += [] if images else ["--text", str(text), "--tokens", "6000", "--length", str(LENGTH)]
    words += ["--out", str(out)] if arguments[0] == "compress" else []
    try:
        code, said, errors = run(words)
    except Exception:
        return Outcome("traceback", traceback.format_exc().strip().splitlines()[-1])
    if code == 2:
        return Outcome("refused", errors.strip().splitlines()[-1])
    if case.weights in BROKEN:
        return Outcome("wrong", "a broken checkpoint was accepted")
    if code != 0:
        return Outcome("wrong" if out.exists() else "right", f"exit code {code}")
    data = json.loads(said)
    if arguments[0] == "inspect":
        return inspected(data)
    return judged(case, arguments, data, model, out, None if images else fresh)


def near(own: float, verdict: dict[str, Any]) -> bool:
    """Whether the damage is what was said, by the number or by its interval."""
    said, low, high = (verdict[name] for name in ("damage", "low", "high"))
    within = low is not None and low <= own <= high
    return within or said / FACTOR <= own <= said * FACTOR


def inspected(data: dict[str, Any]) -> Outcome:
    """Numbers, all of them; where heads were removed, how well importance ranks what that did."""
    heads = data["heads"]
    bad = [
        f"{name} of layer {row['layer']} head {row['head']} is {value}"
        for row in heads
        for name, value in row.items()
        if isinstance(value, float) and not math.isfinite(value)
    ]
    if bad:
        return Outcome("wrong", bad[0])
    if "importance_measured" not in heads[0] or len(heads) < 10:
        return Outcome("right")
    said, true = ([row[name] for row in heads] for name in ("importance", "importance_measured"))
    return Outcome("right", f"rank correlation {spearmanr(said, true).statistic:.2f}")


def in_float32(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: x.float() if x.is_floating_point() else x for name, x in batch.items()}


def judged(
    case: Case, arguments: list[str], data: dict[str, Any], model: Path, out: Path,
    fresh: list[str] | None,
) -> Outcome:  # fmt: skip
    """What was written against the original."""
    kind = getattr(
        transformers, json.loads((model / "config.json").read_text())["architectures"][0]
    )
    original = kind.from_pretrained(model, dtype="auto").eval()
    smaller = headwise.from_pretrained(out).eval()
    types = [{parameter.dtype for parameter in each.parameters()} for each in (original, smaller)]
    batches = pictures(original) if fresh is None else passages(model, original, fresh)
    own, nothing = apart(original, smaller, batches)
    verdict = data["evaluation"]["verdicts"][0]
    if math.isfinite(own) and any("rounding adds" in warning for warning in data["warnings"]):
        own, nothing = apart(original.float(), smaller.float(), list(map(in_float32, batches)))
    reported = verdict["damage"]
    outcome = Outcome("wrong", "", reported, own, nothing)
    share = data["evaluation"]["attention_parameters"]
    kept = share["compressed"] / share["original"]
    if types[0] != types[1]:
        outcome.why = "another precision"
    elif not math.isfinite(own):
        outcome.why = "outputs that are not numbers"
    elif max(own, reported) > UNSEEN and not near(own, verdict):
        outcome.why = f"the damage is another than [{verdict['low']}, {verdict['high']}]"
    elif "--keep" in arguments and kept > 1.05 * float(arguments[2]) + 0.02:
        outcome.why = f"{kept:.2f} is kept"
    elif "--uniform" in arguments and (why := not_stock(kind, original, out, smaller, batches[0])):
        outcome.why = why
    elif own > max(nothing, UNSEEN) and not data["warnings"]:
        outcome.why = "ruined, without a word"
    elif (why := not_cached(smaller, batches[0])) is not None:
        outcome.why = why
    else:
        outcome.kind = "right"
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--classes", action="store_true", help="those of odd_classes instead")
    parser.add_argument("--only", type=int, nargs="+", help="these cases")
    parser.add_argument("--json", type=Path, help="a line a case")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["HEADWISE_CACHE"] = str(Path(temporary) / "cache")
        text, fresh = texts(Path(temporary))
        count = len(CLASSES) if options.classes else options.cases
        for number in options.only or range(count):
            case = listed(number) if options.classes else drawn(options.seed, number)
            arguments = asked(case, options.seed)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    outcome = tried(case, arguments, Path(folder), text, fresh)
                except Exception:  # of this script, or of a model that transformers cannot make
                    outcome = Outcome("not tried", traceback.format_exc().strip().splitlines()[-1])
            counts[outcome.kind] += 1
            print(
                f"{number:4} {outcome.kind:9} {case} | {' '.join(arguments)} {outcome}", flush=True
            )
            if options.json:
                with options.json.open("a") as file:
                    file.write(
                        json.dumps({"case": str(case), "asked": arguments, **vars(outcome)}) + "\n"
                    )
    print(", ".join(f"{kind}: {count}" for kind, count in sorted(counts.items())))
    sys.exit(bool(counts["wrong"] or counts["traceback"]))


if __name__ == "__main__":
    main()
