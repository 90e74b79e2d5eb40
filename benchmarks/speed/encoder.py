"""Encoders against a training loop in nanoGPT's style, eager and under torch.compile.

    OMP_NUM_THREADS=1 python benchmarks/speed/encoder.py              the rank studies' sizes, eager
    OMP_NUM_THREADS=1 python benchmarks/speed/encoder.py --compile    torch.compile as well

Whole training steps on the same streams of data: drawing, forward, squared error, backward, AdamW.
The loop has one module of the same encoder, torch's scaled_dot_product_attention and fused AdamW;
ensembles of 1 and 8 are what `headwise.train` runs. One process, one thread, turns in which every
contender takes a few steps, processor time, the median turn. The compiled loop is credited twice:
without the compilation, and with it over as many steps as the study's training takes.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional

from headwise.nets import EncoderShape
from headwise.tasks import InContextRegression, Neighbours
from headwise.training import Ensemble, Streaming, keep_freed_memory
from headwise.training.ensemble import stackable
from headwise.training.stream.data import Stream

TURNS, TOGETHER = 9, 8
Step = Callable[[], object]
Task = Neighbours | InContextRegression


@dataclass(frozen=True)
class Size:
    """A task, an encoder for it, and how it is trained."""

    task: Task
    shape: EncoderShape
    batch: int
    steps: int


def paper(points: int, rank: int, modules: int, layers: int, dim: int = 16, ffn: int = 128) -> Size:
    """The rank paper's encoder, at the sizes of the studies' standard tiers."""
    task = Neighbours(dim=dim, points=points, target="farthest", form="self")
    shape = EncoderShape.paper(
        token_dim=dim, rank=rank, modules=modules, layers=layers, ffn=ffn, outputs=dim
    )
    return Size(task, shape, 64, 5_000 if layers == 1 else 3_600)


def in_context(heads: int) -> Size:
    """Regression in context: pre-norm, layer norms, a causal mask and positions."""
    task = InContextRegression(dim=4, shots=8)
    shape = EncoderShape.plain(
        token_dim=task.token_dim, outputs=1, width=32, heads=heads, layers=3, ffn=128,
        keys="earlier", positions=task.length,
    )  # fmt: skip
    return Size(task, shape, 32, 3_000)


SIZES = {
    "rank-16": paper(8, 16, 1, 1),
    "rank-1": paper(8, 1, 1, 1),
    "rank-16-w-4": paper(8, 16, 4, 1),
    "rank-1-w-4": paper(8, 1, 4, 1),
    "three-layers": paper(8, 8, 1, 3),
    "sixteen-points": paper(16, 4, 2, 1),
    "dimension-32": paper(8, 8, 2, 1, 32, 256),
    "in-context": in_context(4),
    "paper": paper(16, 16, 1, 1, 64, 2048),
}
SHOWN = list(SIZES)[:-1]


class Layer(nn.Module):
    """Attention and feed-forward network with residual connections, the norm after or before."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.shape, width, heads = shape, shape.width, shape.layers[0]
        self.heads, self.size = heads.heads, heads.v_dim
        self.qkv = nn.Linear(width, 3 * self.heads * self.size)
        self.out = nn.Linear(self.heads * self.size, width)
        self.up, self.down = nn.Linear(width, shape.ffn), nn.Linear(shape.ffn, width)
        self.norm1, self.norm2 = norm(shape), norm(shape)

    def attend(self, stream: Tensor) -> Tensor:
        """What the heads read."""
        batch, length, _ = stream.shape
        parts = self.qkv(stream).split(self.heads * self.size, 2)
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts
        )
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=self.shape.keys == "earlier"
        )
        mixed = mixed.transpose(1, 2).reshape(batch, length, self.heads * self.size)
        return self.out(mixed / self.shape.modules if self.shape.modules > 1 else mixed)

    def forward(self, stream: Tensor) -> Tensor:
        """The stream after the layer."""
        if self.shape.norm_first:
            stream = stream + self.attend(self.norm1(stream))
            return stream + self.down(functional.relu(self.up(self.norm2(stream))))
        stream = self.norm1(stream + self.attend(stream))
        return self.norm2(stream + self.down(functional.relu(self.up(stream))))


class Length(nn.Module):
    """A token scaled to length one, times a learned number."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, stream: Tensor) -> Tensor:
        """The scaled tokens."""
        return functional.normalize(stream, dim=-1) * self.weight


def norm(shape: EncoderShape) -> nn.Module:
    """The norm that the shape names."""
    return nn.LayerNorm(shape.width) if shape.norm == "layer" else Length()


class Encoder(nn.Module):
    """The encoder as one would write it down."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.into = nn.Linear(shape.token_dim, shape.width) if shape.maps else nn.Identity()
        self.readout = nn.Linear(shape.width, shape.outputs) if shape.maps else nn.Identity()
        self.norm = norm(shape) if shape.norm_first else nn.Identity()
        self.layers = nn.ModuleList(Layer(shape) for _ in shape.layers)
        places = 0.02 * torch.randn(max(shape.positions, 1), shape.width)
        self.positions = nn.Parameter(places) if shape.positions else None

    def forward(self, tokens: Tensor) -> Tensor:
        """An output for every token."""
        stream = self.into(tokens)
        if self.positions is not None:
            stream = stream + self.positions
        for layer in self.layers:
            stream = layer(stream)
        return self.readout(self.norm(stream))


def plain(size: Size, compiled: bool) -> Step:
    """The loop as one would write it."""
    net, answers = Encoder(size.shape), size.task.answers
    adam = torch.optim.AdamW(
        net.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    stream = Stream(size.task, data_seed=0, seed=0)

    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        return (net(inputs)[:, answers] - targets).square().sum(-1).mean()

    computed = torch.compile(loss_of) if compiled else loss_of

    def step() -> None:
        computed(*stream.take(size.batch)).backward()
        adam.step()
        adam.zero_grad(set_to_none=True)

    return step


def ours(size: Size, members: int) -> Step:
    """The step that `headwise.train` takes."""
    training = Streaming(steps=size.steps, rate=1e-3, batch=size.batch)
    initial = [size.shape.initial_params(seed) for seed in range(members)]
    together = None if stackable(size.shape, training) else 1
    ensemble = Ensemble(size.shape, training, initial, together=together)
    streams = [Stream(size.task, data_seed=0, seed=seed) for seed in range(members)]

    def step() -> None:
        batches = [stream.take(size.batch) for stream in streams]
        inputs, targets = (torch.stack(part) for part in zip(*batches, strict=True))
        ensemble.step(inputs, targets, size.task.answers, rate=1e-3)

    return step


def spent(step: Step, count: int = 1) -> float:
    """Processor seconds a step."""
    started = time.process_time()
    for _ in range(count):
        step()
    return (time.process_time() - started) / count


def compare(name: str, compiled: bool, turns: int) -> None:
    """A line a contender: milliseconds a member and step, and how often that goes into eager's."""
    size = SIZES[name]
    made = {"plain, eager": plain(size, False)}
    if compiled:
        made["plain, compiled"] = plain(size, True)
    made |= {"headwise, one": ours(size, 1), "headwise, eight": ours(size, TOGETHER)}
    first = {contender: spent(step) for contender, step in made.items()}
    rounds = [{each: spent(step, 8) for each, step in made.items()} for _ in range(turns)]
    taken = {each: median(times[each] for times in rounds) for each in made}
    if compiled:
        cost = first["plain, compiled"] - taken["plain, compiled"]
        taken["plain, compiled, counted"] = taken["plain, compiled"] + cost / size.steps
    for contender, seconds in taken.items():
        each = seconds / (TOGETHER if contender.endswith("eight") else 1)
        ratio = taken["plain, eager"] / each
        print(f"{name:15} {contender:25} {1e3 * each:8.2f} ms {ratio:6.2f}×", flush=True)


def main() -> None:
    """A table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=SHOWN, help="; ".join(SIZES))
    parser.add_argument("--compile", action="store_true", help="torch.compile as well")
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    for name in given.sizes:
        compare(name, given.compile, given.turns)


if __name__ == "__main__":
    main()
