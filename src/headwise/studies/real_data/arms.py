"""Three arms that share their runs: width and heads together, heads alone, width alone.

The paper's networks have a fixed dimension a head, so width grows with the heads. The two controls
hold one of them and multiply the other by the same factor; all three meet in one network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from headwise.lab.run import Run
from headwise.nets import AttentionShape, RankerShape, VisionShape
from headwise.tasks.images import Images
from headwise.tasks.text_ranking import TextRanking
from headwise.training import ChoiceTraining

GROWING, FIXED_WIDTH, FIXED_HEADS = "growing", "fixed-width", "fixed-heads"

TITLES = {
    GROWING: "Width grows with the heads (the paper's arm)",
    FIXED_WIDTH: "Heads alone: total width and parameters are fixed",
    FIXED_HEADS: "Width alone: the number of heads is fixed",
}


@dataclass(frozen=True)
class ArmSizes:
    """A tier's networks: `head_dim` numbers a head in the paper's arm, and what controls hold."""

    heads: tuple[int, ...]
    head_dim: int
    width: int
    held_heads: int
    layers: int
    training: ChoiceTraining
    seeds: int
    dropout: float = 0.0

    def shapes(self) -> dict[str, list[tuple[int, int]]]:
        """Heads and total width of every network, by arm."""
        growing = [(heads, heads * self.head_dim) for heads in self.heads]
        return {
            GROWING: growing,
            FIXED_WIDTH: [(heads, self.width) for heads in self.heads if self.width % heads == 0],
            FIXED_HEADS: [(self.held_heads, width) for _, width in growing],
        }

    def arms(self, tasks: Sequence[Images | TextRanking]) -> dict[str, list[Run]]:
        """The runs of every arm, on every task, all seeds."""
        return {
            arm: [run for task, shape in product(tasks, shapes) for run in self.runs(task, *shape)]
            for arm, shapes in self.shapes().items()
        }

    def runs(self, task: Images | TextRanking, heads: int, width: int) -> list[Run]:
        """One network on one task, all seeds."""
        net = self._net(task, heads, width)
        return [
            Run(kind="choices", task=task, net=net, training=self.training, seed=seed)
            for seed in range(self.seeds)
        ]

    def _net(self, task: Images | TextRanking, heads: int, width: int) -> VisionShape | RankerShape:
        layer = AttentionShape(heads=heads, qk_dim=width // heads, v_dim=width // heads)
        size: dict[str, Any] = {"width": width, "layers": (layer,) * self.layers, "ffn": 4 * width}
        size |= {"token_dim": task.token_dim, "dropout": self.dropout}
        if isinstance(task, Images):
            return VisionShape(patches=task.patches, outputs=task.classes, **size)
        return RankerShape(packing=task.packing, **size)


SMALL = ArmSizes(
    heads=(1, 2, 4, 8),
    head_dim=8,
    width=32,
    held_heads=4,
    layers=4,
    training=ChoiceTraining(steps=125, rate=4e-3, batch=32),
    seeds=6,
)
"""What a quick tier begins with."""
