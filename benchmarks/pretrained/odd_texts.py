"""Texts in forms that nobody tuned for, to real models; what is reported against an own loop.

    python benchmarks/pretrained/fetch_models.py DIR
    python benchmarks/pretrained/odd_texts.py --models DIR [--cases N] [--seed N] [--keep F]

A case is a form (`FORMS`: lines broken by hand, one line, JSON, quoted mail …), a kind of text and
a model. Half of the paragraphs, drawn at random, are given to `headwise compress`; the others, in
the same form, are judged by an own loop: an encoder on the paragraphs, a decoder on windows.

- right: the report is the own damage within a factor of 1.5, or holds it in its interval;
- unsure: a warning says that the damage is not known, or that the text repeats itself;
- refused: a sentence;
- wrong: none of these. Exit code 1.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import load_model, load_tokenizer
from headwise.pretrained.text.calibration import (
    BOUNDARY,
    calibration_kinds,
    documents,
    held_out_texts,
    packaged_text,
)

FACTOR = 1.5
MODELS = ("all-MiniLM-L6-v2", "stories15M")
TOKENS, WINDOW, WINDOWS = 8000, 256, 32
_LETTERS, _PARAGRAPHS = (150, 1200), 260  # of a paragraph; of a case at most


@dataclass(frozen=True)
class Form:
    """How a paragraph is written, what stands between two, and what inputs they make."""

    write: Callable[[str], str]
    between: str = "\n\n"
    inputs: Callable[[list[str]], list[str]] | None = None  # by default each paragraph, as written


def _plain(text: str) -> str:
    return text


def _wrapped(text: str, **options: Any) -> str:
    return textwrap.fill(text, 72, break_on_hyphens=False, **options)


def _sentences(lines: list[str]) -> list[str]:
    found = [each for line in lines for each in re.split(r"(?<=[.!?])\s+", line)]
    return [each for each in found if len(each) >= 40]


def _stretches(lines: list[str]) -> list[str]:
    return textwrap.wrap(" ".join(lines), 4 * 512)


FORMS = {
    "a line each": Form(_plain, "\n"),
    "between blank lines": Form(_plain),
    "documents": Form(_plain, f"\n{BOUNDARY}\n"),
    "documents of broken lines": Form(_wrapped, f"\n{BOUNDARY}\n"),
    "broken lines": Form(_wrapped),
    "broken lines, Windows": Form(lambda text: _wrapped(text).replace("\n", "\r\n"), "\r\n\r\n"),
    "broken lines, indented": Form(lambda text: _wrapped(text, initial_indent="    "), "\n"),
    "quoted mail": Form(lambda text: textwrap.indent(_wrapped(text), "> "), "\n>\n"),
    "a list": Form(lambda text: "- " + _wrapped(text, subsequent_indent="  "), "\n"),
    "one line": Form(_plain, " ", _stretches),
    "sentences": Form(lambda text: "\n".join(_sentences([text])), "\n", _sentences),
    "narrow": Form(lambda text: textwrap.fill(text, 32)),
    "JSON lines": Form(lambda text: json.dumps({"text": text}), "\n"),
    "a table": Form(lambda text: f'{len(text)},"{text}",0.5', "\n"),
    "HTML": Form(lambda text: f"<p>{text}</p>", "\n"),
    "a numbered page each": Form(lambda text: f"PAGE {len(text)}\n\n{_wrapped(text)}", "\n\n\f"),
    "capitals": Form(str.upper),
}


def kinds() -> dict[str, list[str]]:
    """The packaged texts' paragraphs by kind, where there are enough."""
    texts = {f"held-out {name}": text for name, text in held_out_texts().items()}
    together: dict[str, list[str]] = {}
    named = zip(calibration_kinds(), documents(packaged_text("calibration")), strict=True)
    for kind, text in named:
        together.setdefault(kind, []).append(text)
    texts |= {kind: "\n".join(each) for kind, each in together.items()}
    least, most = _LETTERS
    found = {
        kind: [line.strip() for line in text.splitlines() if least <= len(line.strip()) <= most]
        for kind, text in texts.items()
    }
    return {kind: lines for kind, lines in found.items() if len(lines) >= 100}


@torch.no_grad()
def own_damage(original: Any, smaller: Any, tokenizer: Any, form: Form, fresh: list[str]) -> float:
    """By plain torch, on text that the command has not seen."""
    if type(original).__name__.endswith("CausalLM"):
        ids = tokenizer(form.between.join(map(form.write, fresh)), return_tensors="pt").input_ids
        rows = ids[0, : WINDOW * WINDOWS]
        rows = rows[: len(rows) // WINDOW * WINDOW].view(-1, WINDOW)
        found = []
        for row in rows.split(4):
            before, after = (
                m(input_ids=row).logits[:, :-1].log_softmax(-1) for m in (original, smaller)
            )
            found.append((before.exp() * (before - after)).sum(-1).flatten())
        return float(torch.cat(found).mean())
    inputs = form.inputs(fresh) if form.inputs else list(map(form.write, fresh))
    apart = []
    for piece in inputs[:160]:
        batch = tokenizer(piece, return_tensors="pt", truncation=True, max_length=512)
        before, after = (m(**batch).last_hidden_state.mean(1) for m in (original, smaller))
        apart.append(1 - torch.cosine_similarity(before, after))
    return float(torch.cat(apart).mean())


def tried(
    name: str, models: dict[str, Any], form: Form, lines: list[str], keep: float, folder: Path
) -> tuple[str, str]:
    """What came of a case, and its figures."""
    model, tokenizer = models[name]
    path = folder / "text.txt"
    path.write_bytes(form.between.join(map(form.write, lines[::2])).encode())
    options: dict[str, Any] = {"tokens": TOKENS, "time_it": False, "cache": False}
    options |= {"length": WINDOW} if name == "stories15M" else {}
    try:
        result = headwise.compress(model, tokenizer=tokenizer, text=path, keep=keep, **options)
    except InputError as error:
        return "refused", str(error)
    verdict = result.evaluation.verdicts[0]
    own = own_damage(model, result.model.eval(), tokenizer, form, lines[1::2])
    interval = "" if verdict.low is None else f" [{verdict.low:.4f}, {verdict.high:.4f}]"
    said = f"{verdict.damage:.4f}{interval} reported, {own:.4f} own, {verdict.documents} texts"
    within = verdict.low is not None and verdict.low <= own <= verdict.high
    if within or verdict.damage / FACTOR <= own <= verdict.damage * FACTOR:
        return "right", said
    doubts = [each for each in result.warnings if "not known" in each or "word for word" in each]
    return ("unsure", f"{said}; {doubts[0]}") if doubts else ("wrong", said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=2 * len(FORMS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=float, default=0.5)
    options = parser.parse_args()
    folder = options.models
    models = {name: (load_model(folder / name), load_tokenizer(folder / name)) for name in MODELS}
    sources = kinds()
    outcomes: Counter[str] = Counter()
    for case in range(options.cases):
        rng = random.Random(f"{options.seed}-{case}")
        label, form = list(FORMS.items())[case % len(FORMS)]
        name = MODELS[case // len(FORMS) % len(MODELS)]
        kind = rng.choice(sorted(sources))
        lines = rng.sample(sources[kind], min(_PARAGRAPHS, len(sources[kind])))
        with tempfile.TemporaryDirectory() as place:
            outcome, why = tried(name, models, form, lines, options.keep, Path(place))
        outcomes[outcome] += 1
        print(f"{case:>4} {outcome:<8}{name}; {label}; {kind} | {why}", flush=True)
    print(", ".join(f"{outcome}: {count}" for outcome, count in sorted(outcomes.items())))
    sys.exit(bool(outcomes["wrong"]))


if __name__ == "__main__":
    main()
