"""How fast variants of a head train: headwise's engines against the loop a user would write.

    python benchmarks/speed/variants.py            about three minutes
    python benchmarks/speed/variants.py --quick    fewer rounds

One process, one thread, rounds that visit every contender in turn, the process's own CPU time, the
median over rounds (as `kernel.py`). The plain loop trains one network after the other: torch
modules of the variant's or model's formula over all tokens, fused Adam. The kernel's
variants are compared with its plain heads.
"""

import argparse
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from headwise.nets import PooledShape
from headwise.nets.sequence import Convolutions, Recurrence, SetPooling, StateSpace
from headwise.training import Training, keep_freed_memory
from headwise.training.fused.engine import FusedEngine
from headwise.training.samples.choose import make_engine
from headwise.training.samples.stacked import lanes
from kernel import HEAD_DIM, TOKEN_DIM, WIDTH, Contender, rates, steps_of

HEADS, LENGTH = 4, 32
STACKED = ("talking", "mixture:1:2", "gated", "differential", "linear")
FUSED = ("grouped:2", "grouped:1", "banded:2", "window:16", "top-k:4")


class PlainVariant(nn.Module):
    """A class-token network with heads of a variant, as one would write it down."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.variant, dim = variant, HEADS * HEAD_DIM
        maps = 2 * dim if variant == "differential" else dim
        self.embed = nn.Sequential(nn.Linear(TOKEN_DIM, WIDTH), nn.ReLU(), nn.Linear(WIDTH, dim))
        self.class_token = nn.Parameter(torch.randn(dim) * 0.02)
        self.query, self.key = nn.Linear(dim, maps), nn.Linear(dim, maps)
        self.value, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.readout = nn.Sequential(nn.Linear(dim, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1))
        self.before, self.after = (nn.Parameter(torch.eye(HEADS)) for _ in range(2))
        self.gate, self.route = nn.Linear(dim, dim), nn.Linear(dim, HEADS)
        self.subtract = nn.Parameter(torch.tensor(0.2))

    def forward(self, tokens: Tensor) -> Tensor:
        """The answers to a batch of sequences."""
        class_token = self.class_token.expand(len(tokens), 1, -1)
        stream = torch.cat([self.embed(tokens), class_token], 1)
        query, key, value = (
            each(stream).unflatten(2, (-1, HEAD_DIM)).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        if self.variant == "linear":
            query, key = functional.elu(query) + 1, functional.elu(key) + 1
            weights = query @ key.mT
            weights = weights / weights.sum(-1, keepdim=True)
        else:
            scores = query @ key.mT / math.sqrt(HEAD_DIM)
            if self.variant == "talking":
                scores = torch.einsum("ij,bjqk->biqk", self.before, scores)
            weights = scores.softmax(-1)
            if self.variant == "talking":
                weights = torch.einsum("ij,bjqk->biqk", self.after, weights)
            if self.variant == "differential":
                weights = weights[:, :HEADS] - self.subtract * weights[:, HEADS:]
        heads = weights @ value
        if self.variant.startswith("mixture"):
            chances = self.route(stream).softmax(-1)
            best = chances.topk(3, -1).indices
            chosen = chances * torch.zeros_like(chances).scatter(-1, best, 1.0)
            heads = heads * chosen.mT[..., None]
        mixed = heads.transpose(1, 2).flatten(2)
        if self.variant == "gated":
            mixed = mixed * torch.sigmoid(self.gate(stream))
        return self.readout(self.out(mixed)[:, -1]).squeeze(-1)


class PlainModel(nn.Module):
    """A model without heads between embedding and readout, of torch's own layers where it has them.

    The GRU and the convolutions are torch's; the state space is the scan of its formula as a
    product in frequencies, which is how S4D is usually written; pooling is one call.
    """

    def __init__(self, shape: PooledShape) -> None:
        super().__init__()
        self.pooling, dim = shape.pooling, shape.embed_dim
        self.embed = nn.Sequential(nn.Linear(TOKEN_DIM, WIDTH), nn.ReLU(), nn.Linear(WIDTH, dim))
        out = shape.pooling.out_dim(dim)
        self.readout = nn.Sequential(nn.Linear(out, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1))
        if isinstance(self.pooling, Recurrence):
            self.gru = nn.GRU(dim, out, batch_first=True)
        if isinstance(self.pooling, Convolutions):
            kernel = self.pooling.kernel
            self.layers = nn.ModuleList(
                nn.Conv1d(dim, dim, kernel, padding=(kernel - 1) << layer, dilation=1 << layer)
                for layer in range(self.pooling.layers)
            )
        if isinstance(self.pooling, StateSpace):
            state, layers = self.pooling.state, range(self.pooling.layers)
            self.into = nn.ModuleList(nn.Linear(dim, 2 * state, bias=False) for _ in layers)
            self.back = nn.ModuleList(nn.Linear(2 * state, dim, bias=False) for _ in layers)
            self.skip = nn.ModuleList(nn.Linear(dim, dim) for _ in layers)
            self.rate = nn.Parameter(torch.linspace(-4, -1, state).repeat(len(layers), 1))
            self.turn = nn.Parameter(torch.linspace(0, 1, state).repeat(len(layers), 1))

    def forward(self, tokens: Tensor) -> Tensor:
        """The answers to a batch of sequences."""
        return self.readout(self.pooled(self.embed(tokens))).squeeze(-1)

    def pooled(self, stream: Tensor) -> Tensor:
        """One vector a sequence."""
        if isinstance(self.pooling, Recurrence):
            return self.gru(stream)[0][:, -1]
        if isinstance(self.pooling, SetPooling):
            return stream.amax(1) if self.pooling.kind == "max" else stream.mean(1)
        length = stream.shape[1]
        if isinstance(self.pooling, Convolutions):
            stream = stream.mT
            for layer in self.layers:
                stream = stream + torch.relu(layer(stream)[..., :length])
            return stream[..., -1]
        layers = zip(self.into, self.back, self.skip, strict=True)
        for index, (into, back, skip) in enumerate(layers):
            steps = torch.complex(*into(stream).chunk(2, -1))
            power = torch.complex(-0.5 * self.rate[index].exp(), self.turn[index])
            kernel = torch.exp(power * torch.arange(length)[:, None])
            both = torch.fft.fft(steps, 2 * length, 1) * torch.fft.fft(kernel, 2 * length, 0)
            states = torch.fft.ifft(both, dim=1)[:, :length]
            read = back(torch.cat([states.real, states.imag], -1))
            stream = stream + functional.gelu(read + skip(stream))
        return stream[:, -1]


def plain(net: nn.Module, batch: int) -> Contender:
    """The plain loop."""
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, fused=True)
    for parameter in net.parameters():  # those that a variant does not use
        parameter.grad = torch.zeros_like(parameter)
    inputs, targets = torch.randn(8, batch, LENGTH, TOKEN_DIM), torch.randn(8, batch)

    def steps(count: int) -> int:
        for step in range(count):
            loss = functional.mse_loss(net(inputs[step % 8]), targets[step % 8])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return count

    return steps


def together(shape: PooledShape, batch: int) -> Contender:
    """As many members as a stack has, by the engine that headwise picks."""
    members = lanes(shape)
    training, seeds = Training(steps=1, rate=1e-3, batch=batch), range(members)
    engine, _ = make_engine(shape, training, [shape.initial_params(s) for s in seeds], seeds)
    return steps_of(engine, members, LENGTH, batch)


def fused(variant: str, batch: int) -> Contender:
    """One member by the kernel."""
    shape = PooledShape.of_heads(token_dim=TOKEN_DIM, heads=HEADS, variant=variant)
    training = Training(steps=1, rate=1e-3, batch=batch)
    engine = FusedEngine(shape, training, [shape.initial_params(0)])
    return steps_of(engine, 1, LENGTH, batch)


def others() -> dict[str, PooledShape]:
    """Models without heads."""
    made = [
        (Recurrence(state=8), WIDTH),
        (Convolutions.reaching(LENGTH), 16),
        (StateSpace(state=8), 16),
        (SetPooling(kind="max"), 8),
        (SetPooling(kind="mean"), 32),
    ]
    return {
        pooling.model: PooledShape.standard(token_dim=TOKEN_DIM, pooling=pooling, embed_dim=dim)
        for pooling, dim in made
    }


def main() -> None:
    """Two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 3 if parser.parse_args().quick else 9
    torch.set_num_threads(1)
    keep_freed_memory()
    for batch in (32, 256):
        print(f"\nlength {LENGTH}, {HEADS} heads, batch {batch}: networks' steps a second")
        for variant in STACKED:
            shape = PooledShape.of_heads(token_dim=TOKEN_DIM, heads=HEADS, variant=variant)
            made = {"loop": plain(PlainVariant(variant), batch), "all": together(shape, batch)}
            _compare(variant, rates(made, rounds, 0.3))
        made = {name: fused(name, batch) for name in ("plain", *FUSED)}
        found = rates(made, rounds, 0.3)
        for name, rate in found.items():
            print(f"{name:14} kernel {rate:7.0f}  {found['plain'] / rate:5.2f}× plain heads' time")
        for name, shape in others().items():
            made = {"loop": plain(PlainModel(shape), batch), "all": together(shape, batch)}
            _compare(name, rates(made, rounds, 0.3))


def _compare(name: str, found: dict[str, float]) -> None:
    loop, all_at_once = found["loop"], found["all"]
    print(f"{name:14} loop {loop:7.0f}  together {all_at_once:7.0f} {all_at_once / loop:6.1f}×")


if __name__ == "__main__":
    main()
