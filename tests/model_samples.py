"""A small inspection and a compression, made up: results of pretrained models that have a page."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from headwise.pretrained._evaluate import Evaluation, TextVerdict
from headwise.pretrained.closeup.heads import AttendedText, HeadProfiles
from headwise.pretrained.closeup.sizes import SizePoint
from headwise.pretrained.closeup.texts import Continuation
from headwise.pretrained.compressed import Compressed
from headwise.pretrained.inspection import Inspection
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.shapes import GroupShape, LayerShape
from headwise.pretrained.speed import Pairwise

HOSTILE = "<script>window.broken = 1</script> \"quoted\" 'names' <!-- and </script>"
"""A name that would be markup if it were not escaped."""


def sample_inspection(
    layers: int = 3, per_layer: int = 4, sizes: Sequence[int] = (2, 4, 8)
) -> Inspection:
    """One head matters a thousand times more than the others."""
    places = [(layer, head) for layer in range(layers) for head in range(per_layer)]
    heads = pd.DataFrame(
        [
            {
                "layer": layer,
                "head": head,
                "importance": 1.0 if (layer, head) == (1, 2) else 1e-3 * (1 + layer + head),
                "size_at_1pct": 8 + head,
                "similarity": 0.1 * head,
                "most_similar_head": (head + 1) % per_layer,
            }
            for layer, head in places
        ]
    )
    errors = pd.DataFrame(
        [
            {"layer": layer, "head": head, "length": length, "size": size, "change": 1 / size}
            for layer, head in places
            for length in (8, 16)
            for size in sizes
        ]
    )
    found = ["one head carries half of the importance", "later layers do not saturate more"]
    return Inspection(
        name=HOSTILE,
        heads=heads,
        errors=errors,
        sizes=pd.DataFrame(),
        findings=found,
        unit="nats a token",
        objective="loss",
        calibration="some text",
        profiles=sample_profiles(),
    )


def sample_profiles() -> HeadProfiles:
    """Every head of layer l attends to the token l + 1 places before, and else to the first."""
    tokens = ["<s>", "<script>window.broken = 1</script>", "once", '"', "upon", "a"]
    weights = {}
    for layer in range(3):
        rows = np.zeros((4, len(tokens), len(tokens)))
        for at in range(len(tokens)):
            rows[:, at, max(0, at - layer - 1)] = 1.0
        weights[layer] = rows
    return HeadProfiles(
        spectra={layer: np.tile(0.5 ** np.arange(8.0), (4, 1)) for layer in range(3)},
        reach={layer: np.tile([0.1, 0.6, 0.3], (4, 1)) for layer in range(3)},
        distances=["0", "1", "2–3"],
        texts=[AttendedText(tokens, weights)],
    )


def sample_compression() -> Compressed:
    """Two layers of four heads at a quarter less; sizes to choose from and a text, made up."""

    def shape(qk_dim: int) -> LayerShape:
        groups = (GroupShape(heads=(head,), qk_dim=qk_dim, v_dim=6) for head in range(3))
        return LayerShape(groups=(*groups, GroupShape(heads=(), qk_dim=0, v_dim=0)))

    def point(method: str, kept: float, damage: float | None) -> SizePoint:
        known = {} if damage is None else {"low": damage / 2, "high": 2 * damage}
        layers = (shape(round(8 * kept)),) * 2
        return SizePoint(method, kept, layers, (kept, kept), 0.1 / kept, damage, **known)

    sizes = [point("fisher", 0.5, 0.3), point("fisher", 0.6, None), point("fisher", 0.75, 0.1)]
    identity = {"heads": 4, "head_dim": 8, "kv_heads": 4, "layers": 2}
    verdict = TextVerdict("some text", 0.11, 0.05, 0.2, 7, 1000, Pairwise(2.0, 2.1))
    judged = Evaluation(
        objective="loss",
        unit="nats/token",
        verdicts=[verdict],
        attention_parameters=Pairwise(400, 300),
        parameters=Pairwise(1000, 900),
        cache_bytes_per_token=Pairwise(64, 48),
        attention_flops_per_token=Pairwise(1e4, 8e3),
        latency_ms={"a generated token": Pairwise(2.0, 2.4)},
    )
    return Compressed(
        name=HOSTILE,
        model=None,
        plan=CompressionPlan(model=identity, method="fisher", layers=(shape(6),) * 2),
        evaluation=judged,
        certificates=[],
        recovery=[],
        calibration="some text",
        sizes=[*sizes, point("random", 0.75, 0.9)],
        texts=[Continuation(f"Once {HOSTILE}", "upon a time", "there was", 1)],
    )
