"""Decoders: causal attention by blocks against torch's own kernel, and members side by side.

    OMP_NUM_THREADS=1 python benchmarks/speed/decoder.py

Forward and backward, one thread, the smallest of several interleaved runs.
"""

import time
from collections.abc import Callable, Mapping

import torch
from torch.nn import functional

from headwise.nets import AttentionShape, DecoderShape, stack
from headwise.nets.attention import causal_attention
from headwise.training import keep_freed_memory

TOKENS, REPEATS = 2048, 6


def fastest(programs: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of each, measured in turn."""
    best = dict.fromkeys(programs, float("inf"))
    for _ in range(REPEATS):
        for name, program in programs.items():
            started = time.perf_counter()
            program()
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def attention(length: int, heads: int, qk_dim: int, v_dim: int) -> None:
    rows = TOKENS // length
    query, key, value = (
        torch.randn(1, rows, length, heads, size).transpose(2, 3).requires_grad_()
        for size in (qk_dim, qk_dim, v_dim)
    )
    wanted = torch.randn_like(value)

    def blocks() -> object:
        return torch.autograd.grad(causal_attention(query, key, value), (query, key, value), wanted)

    def fused() -> object:
        mixed = functional.scaled_dot_product_attention(query[0], key[0], value[0], is_causal=True)
        return torch.autograd.grad(mixed, (query, key, value), wanted[0])

    found = fastest({"blocks": blocks, "torch": fused})
    print(
        f"length {length:4d}, {heads:2d} heads of {qk_dim}/{v_dim}: blocks "
        f"{1e3 * found['blocks']:.1f} ms, torch {1e3 * found['torch']:.1f} ms, "
        f"{found['torch'] / found['blocks']:.2f}×"
    )


def members(width: int, length: int) -> None:
    layer = AttentionShape(heads=4, qk_dim=width // 4, v_dim=width // 4)
    shape = DecoderShape(
        vocabulary=256, width=width, layers=(layer,) * 6, ffn=4 * width, length=length,
        positions="rope", qk_norm=True,
    )  # fmt: skip

    def step(count: int) -> Callable[[], object]:
        leaves = stack([shape.initial_params(seed) for seed in range(count)])
        leaves = {name: value.requires_grad_() for name, value in leaves.items()}
        tokens = torch.randint(0, 256, (count, TOKENS // length, length + 1))

        def program() -> object:
            logits = shape.forward(leaves, tokens[..., :-1]).flatten(0, 2)
            loss = functional.cross_entropy(logits, tokens[..., 1:].flatten())
            return torch.autograd.grad(loss, list(leaves.values()))

        return program

    found = fastest({str(count): step(count) for count in (1, 2, 3)})
    rates = ", ".join(
        f"{count}: {int(count) * TOKENS / seconds:,.0f}" for count, seconds in found.items()
    )
    print(f"width {width}, length {length}, tokens a second by members: {rates}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep_freed_memory()
    for length in (64, 128, 256):
        for sizes in ((1, 64, 64), (4, 16, 16), (8, 8, 8), (16, 4, 4), (8, 4, 12)):
            attention(length, *sizes)
    for width in (64, 96, 128):
        members(width, 128)
