"""Decoders against a training loop in nanoGPT's style, eager and under torch.compile.

    OMP_NUM_THREADS=1 python benchmarks/speed/nanogpt.py              the studies' sizes, eager
    OMP_NUM_THREADS=1 python benchmarks/speed/nanogpt.py --compile    torch.compile as well

Whole training steps (forward, cross-entropy, backward, clipping, AdamW) of the same decoder: RMS
norms, GELU, tied head, no bias; learned positions, or rotated queries and keys with their norms.
The loop has one module, torch's scaled_dot_product_attention and fused AdamW. One process, one
thread, turns in which every contender takes a few steps, processor time, the median turn. The
compiled loop is credited twice: without the compilation, and with it over as many steps as the
study's training takes.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional

from headwise.nets import AttentionShape, DecoderShape
from headwise.training import Ensemble, TextTraining, keep_freed_memory
from headwise.training.text.company import members_of_a_stack
from headwise.training.text.loop import descend_on

SIZES = {  # layers, width, heads, length, batch, steps of the study's training
    "quick tier": (4, 32, 4, 64, 16, 80),
    "standard tier": (6, 64, 4, 128, 16, 150),
    "full tier": (6, 256, 8, 256, 32, 5000),
}
VOCABULARY, TURNS = 256, 7
Step = Callable[[], object]


class Block(nn.Module):
    """Attention and feed-forward network, each behind its norm."""

    def __init__(self, width: int, heads: int, rotated: bool) -> None:
        super().__init__()
        self.heads, self.rotated = heads, rotated
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        if rotated:
            self.query_norm = nn.RMSNorm(width // heads)
            self.key_norm = nn.RMSNorm(width // heads)

    def forward(self, stream: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """The stream after the block."""
        batch, length, width = stream.shape
        parts = self.qkv(self.norm1(stream)).split(width, 2)
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts
        )
        if self.rotated:
            query, key = self.query_norm(query), self.key_norm(key)
            query, key = rotate(query, turn), rotate(key, turn)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        stream = stream + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return stream + self.down(functional.gelu(self.up(self.norm2(stream))))


def rotate(vectors: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Pairs of coordinates, half a vector apart, turned by their position."""
    one, two = vectors.chunk(2, -1)
    cosine, sine = turn
    return torch.cat([one * cosine - two * sine, one * sine + two * cosine], -1)


class Decoder(nn.Module):
    """The decoder as one would write it down."""

    def __init__(self, layers: int, width: int, heads: int, length: int, rotated: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width)
        self.positions = None if rotated else nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, rotated) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        rate = 10_000.0 ** -torch.arange(0, 1, 2 * heads / width)
        angle = torch.arange(length)[:, None] * rate
        self.turn = angle.cos(), angle.sin()

    def forward(self, tokens: Tensor, wanted: Tensor) -> Tensor:
        """The loss."""
        stream = self.table(tokens)
        if self.positions is not None:
            stream = stream + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            stream = block(stream, self.turn)
        logits = functional.linear(self.norm(stream), self.table.weight)
        return functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def plain(size: tuple[int, ...], rotated: bool, compiled: bool) -> Step:
    """nanoGPT's loop."""
    layers, width, heads, length, batch, _ = size
    net = Decoder(layers, width, heads, length, rotated)
    adam = torch.optim.AdamW(net.parameters(), 1e-3, betas=(0.9, 0.95), fused=True)
    tokens = torch.randint(0, VOCABULARY, (batch, length + 1))
    loss_of = torch.compile(net) if compiled else net

    def step() -> None:
        loss = loss_of(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)

    return step


def ours(size: tuple[int, ...], rotated: bool, members: int) -> Step:
    """The step that `headwise.train` takes."""
    layers, width, heads, length, batch, steps = size
    layer = AttentionShape(heads=heads, qk_dim=width // heads, v_dim=width // heads)
    positions = {"positions": "rope", "qk_norm": True} if rotated else {}
    shape = DecoderShape(
        vocabulary=VOCABULARY, width=width, layers=(layer,) * layers, ffn=4 * width,
        length=length, **positions,
    )  # fmt: skip
    training = TextTraining(steps=steps, rate=1e-3, batch=batch)
    together = members_of_a_stack(shape, batch, length, members)
    initial = [shape.initial_params(seed) for seed in range(members)]
    ensemble = Ensemble(shape, training, initial, together=together)
    tokens = torch.randint(0, VOCABULARY, (members, batch, length + 1))
    return lambda: descend_on(ensemble, tokens, 1e-3, 1.0)


def spent(step: Step, count: int = 1) -> float:
    """Processor seconds."""
    started = time.process_time()
    for _ in range(count):
        step()
    return (time.process_time() - started) / count


def compare(name: str, rotated: bool, compiled: bool, turns: int) -> None:
    """A line a contender: milliseconds a member and step, and how often that goes into eager's."""
    size = SIZES[name]
    made = {"nanoGPT, eager": plain(size, rotated, False)}
    if compiled:
        made["nanoGPT, compiled"] = plain(size, rotated, True)
    made |= {"headwise, one": ours(size, rotated, 1), "headwise, four": ours(size, rotated, 4)}
    first = {contender: spent(step) for contender, step in made.items()}
    taken = {
        contender: median(times)
        for contender, *times in zip(
            made, *([spent(step, 2) for step in made.values()] for _ in range(turns)), strict=True
        )
    }
    if compiled:
        cost = first["nanoGPT, compiled"] - taken["nanoGPT, compiled"]
        counted = taken["nanoGPT, compiled"] + cost / size[5]
        taken["nanoGPT, compiled, counted"] = counted
    kind = "rotated" if rotated else "learned"
    for contender, seconds in taken.items():
        each = seconds / (4 if contender.endswith("four") else 1)
        ratio = taken["nanoGPT, eager"] / each
        print(f"{name:14} {kind:8} {contender:27} {1e3 * each:8.1f} ms {ratio:6.2f}×", flush=True)


def main() -> None:
    """A table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=list(SIZES)[:2], help=", ".join(SIZES))
    parser.add_argument("--compile", action="store_true", help="torch.compile as well")
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    for name in given.sizes:
        for rotated in (False, True):
            compare(name, rotated, given.compile, given.turns)


if __name__ == "__main__":
    main()
