"""What a user would write: one torch module a configuration, trained in a Python loop.

All T + 1 tokens go through torch.nn.MultiheadAttention; need_weights=False; fused Adam; batches
already in memory. The benchmarks compare headwise with this, side by side in one run.
"""

import time

import torch
from torch import Tensor, nn


class PlainNet(nn.Module):
    """The class-token network as one would write it down."""

    def __init__(self, token_dim: int, width: int, heads: int, head_dim: int) -> None:
        super().__init__()
        dim = heads * head_dim
        self.embed = nn.Sequential(nn.Linear(token_dim, width), nn.ReLU(), nn.Linear(width, dim))
        self.class_token = nn.Parameter(torch.randn(dim) * 0.02)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.readout = nn.Sequential(nn.Linear(dim, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, tokens: Tensor) -> Tensor:
        embedded = self.embed(tokens)
        class_token = self.class_token.expand(len(tokens), 1, -1)
        stream = torch.cat([embedded, class_token], 1)
        stream, _ = self.attention(stream, stream, stream, need_weights=False)
        return self.readout(stream[:, -1]).squeeze(-1)


def plain_rate(
    length: int,
    batch: int,
    heads: int,
    seconds: float,
    *,
    token_dim: int = 4,
    width: int = 32,
    head_dim: int = 8,
) -> float:
    """Training steps a second of the plain loop, measured for about `seconds`."""
    net = PlainNet(token_dim, width, heads, head_dim)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    inputs, targets = torch.randn(4, batch, length, token_dim), torch.randn(4, batch)

    def step(index: int) -> None:
        loss = nn.functional.mse_loss(net(inputs[index % 4]), targets[index % 4])
        adam.zero_grad()
        loss.backward()
        adam.step()

    step(0)
    steps, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        step(steps)
        steps += 1
    return steps / elapsed
