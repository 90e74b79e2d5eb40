"""Vision transformers and ranking encoders against a plain loop with torch.nn.TransformerEncoder.

Side by side in one process with one thread, at equal shapes, batches and optimiser (fused AdamW,
no dropout), on data in memory: one plain module, one network of headwise, and four of headwise as
one program. The variants take turns and each is credited with its median turn, by processor time,
so that a busy machine disturbs them alike. Run: python benchmarks/speed/real_data.py
"""

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional

from headwise.nets import AttentionShape, RankerShape, VisionShape
from headwise.training import ChoiceTraining, Ensemble, keep_freed_memory
from headwise.training.choices.loop import nats

SIZES = {  # tokens, numbers in a token, width, heads, layers, batch
    "images, width 8": (16, 192, 8, 1, 4, 32),
    "images, width 16": (16, 192, 16, 2, 4, 32),
    "images, width 32": (16, 192, 32, 4, 4, 32),
    "images, width 64": (16, 192, 64, 8, 4, 32),
    "ranking, width 8": (17, 384, 8, 1, 2, 32),
    "ranking, width 32": (17, 384, 32, 4, 2, 32),
    "ranking, width 64": (17, 384, 64, 8, 2, 32),
}
TURNS, MEMBERS, CLASSES = 7, 4, 10


class Plain(nn.Module):
    """The network as one would write it down; a ranker scores every token but the first."""

    def __init__(self, tokens: int, dim: int, width: int, heads: int, layers: int, images: bool):
        super().__init__()
        self.images = images
        self.into = nn.Linear(dim, width)
        self.class_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, tokens + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        norm = nn.LayerNorm(width)
        self.encoder = nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)
        self.readout = nn.Linear(width, CLASSES if images else 1)

    def forward(self, inputs: Tensor) -> Tensor:
        stream = self.into(inputs)
        if not self.images:
            return self.readout(self.encoder(stream)[:, 1:]).squeeze(-1)
        first = self.class_token.expand(len(stream), -1, -1)
        stream = torch.cat([first, stream], 1) + self.positions
        return self.readout(self.encoder(stream)[:, 0])


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    print("network              variant                        examples/s   against torch")
    for name, size in SIZES.items():
        rates = compare(name.startswith("images"), *size)
        for variant, rate in rates.items():
            ratio = rate / rates["torch.nn.TransformerEncoder"]
            print(f"{name:20} {variant:28} {rate:12.0f} {ratio:13.2f}×", flush=True)


def compare(
    images: bool, tokens: int, dim: int, width: int, heads: int, layers: int, batch: int
) -> dict[str, float]:
    """Examples a second of each variant, all members together."""
    size = (tokens, dim, width, heads, layers)
    variants: dict[str, tuple[int, Callable[[], object]]] = {
        "torch.nn.TransformerEncoder": (1, plain_step(images, batch, *size)),
        "headwise, one": (1, ensemble_step(images, batch, 1, *size)),
        f"headwise, {MEMBERS} as one program": (
            MEMBERS,
            ensemble_step(images, batch, MEMBERS, *size),
        ),
    }
    turns: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(TURNS):
        for name, (members, step) in variants.items():
            started = time.process_time()
            step()
            step()
            turns[name].append((time.process_time() - started) / (2 * members * batch))
    return {name: 1 / median(times[1:]) for name, times in turns.items()}


def plain_step(images: bool, batch: int, tokens: int, dim: int, *rest: int) -> Callable[[], object]:
    net = Plain(tokens, dim, *rest, images=images).train()
    adam = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    inputs, answers = torch.randn(batch, tokens, dim), torch.randint(CLASSES, (batch,))

    def step() -> None:
        loss = functional.cross_entropy(net(inputs), answers)
        adam.zero_grad()
        loss.backward()
        adam.step()

    return step


def ensemble_step(
    images: bool, batch: int, members: int, tokens: int, dim: int, width: int, heads: int, deep: int
) -> Callable[[], object]:
    layer = AttentionShape(heads=heads, qk_dim=width // heads, v_dim=width // heads)
    size = {"token_dim": dim, "width": width, "layers": (layer,) * deep, "ffn": 4 * width}
    shape = (
        VisionShape(patches=tokens, outputs=CLASSES, **size)
        if images
        else RankerShape(packing="candidates", **size)
    )
    training = ChoiceTraining(steps=1, rate=1e-3)
    ensemble = Ensemble(shape, training, [shape.initial_params(n) for n in range(members)])
    inputs = torch.randn(members, batch, tokens, dim)
    answers = torch.randint(CLASSES, (members, batch))
    return lambda: ensemble.descend(
        lambda leaves, mine: nats(shape.forward(leaves, inputs[mine]), answers[mine]).mean(1), 1e-3
    )


if __name__ == "__main__":
    main()
