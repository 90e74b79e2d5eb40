"""Many encoders as one program, against what a user would write: torch.nn.TransformerEncoder.

Side by side in one process with one thread: a plain training loop over a single
`torch.nn.TransformerEncoder`, and ensembles of 1 and 8 encoders of the same shape (post-norm with
layer norms, ReLU, no dropout), fed the same batches, both with fused AdamW. The variants take
turns, a few steps each, and each is credited with its median turn, so a busy machine disturbs
them alike. Run: python benchmarks/speed/encoder.py
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import nn

from headwise.nets import EncoderShape
from headwise.tasks import Neighbours
from headwise.training import Ensemble, Streaming, keep_freed_memory
from headwise.training.stream.data import Stream

SIZES = {  # width, points, heads, layers, feed-forward width, batch
    "small": (16, 8, 2, 1, 64, 64),
    "middle": (32, 16, 4, 2, 128, 64),
    "paper": (64, 16, 4, 1, 2048, 64),
}
STEPS_A_TURN, TURNS = 4, 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", default=list(SIZES), help="small, middle, paper")
    torch.set_num_threads(1)
    keep_freed_memory()
    print("size     variant                    ms per model and step   against torch")
    for size in parser.parse_args().sizes:
        times = compare(*SIZES[size])
        for name, milliseconds in times.items():
            ratio = times["torch.nn.TransformerEncoder"] / milliseconds
            print(f"{size:8} {name:28} {milliseconds:18.2f} {ratio:15.2f}×")


def compare(
    width: int, points: int, heads: int, layers: int, ffn: int, batch: int
) -> dict[str, float]:
    """Milliseconds a model and step of each variant."""
    task = Neighbours(dim=width, points=points, target="farthest", form="self")
    size = {"width": width, "heads": heads, "layers": layers, "ffn": ffn}
    variants: dict[str, tuple[int, Callable[[], None]]] = {
        "torch.nn.TransformerEncoder": (1, torch_loop(task, batch, **size)),
        "ensemble of 1": (1, ensemble_loop(task, batch, 1, **size)),
        "ensemble of 8": (8, ensemble_loop(task, batch, 8, **size)),
    }
    turns: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(TURNS + 1):
        for name, (members, step) in variants.items():
            started = time.process_time()
            for _ in range(STEPS_A_TURN):
                step()
            spent = (time.process_time() - started) / (STEPS_A_TURN * members)
            if turn > 0:  # the first turn warms up
                turns[name].append(1e3 * spent)
    return {name: median(spent) for name, spent in turns.items()}


def torch_loop(
    task: Neighbours, batch: int, *, width: int, heads: int, layers: int, ffn: int
) -> Callable[[], None]:
    """The plain loop; the encoder answers with a vector for every point."""
    layer = nn.TransformerEncoderLayer(width, heads, ffn, dropout=0.0, batch_first=True)
    net = nn.TransformerEncoder(layer, layers)
    adam = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.95), fused=True)
    stream = Stream(task, data_seed=0, seed=0)

    def step() -> None:
        inputs, targets = stream.take(batch)
        loss = (net(inputs) - targets).square().sum(-1).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()

    return step


def ensemble_loop(
    task: Neighbours, batch: int, members: int, *, width: int, heads: int, layers: int, ffn: int
) -> Callable[[], None]:
    """The same encoder, `members` of them, each on a stream of its own."""
    shape = EncoderShape(
        token_dim=width,
        outputs=width,
        width=width,
        layers=EncoderShape.paper(token_dim=width, rank=width // heads, layers=layers).layers,
        ffn=ffn,
        norm="layer",
    )
    training = Streaming(steps=1, rate=1e-3, batch=batch)
    ensemble = Ensemble(shape, training, [shape.initial_params(seed) for seed in range(members)])
    streams = [Stream(task, data_seed=0, seed=seed) for seed in range(members)]

    def step() -> None:
        batches = [stream.take(batch) for stream in streams]
        inputs, targets = (torch.stack(part) for part in zip(*batches, strict=True))
        ensemble.step(inputs, targets, task.answers, rate=1e-3)

    return step


if __name__ == "__main__":
    main()
