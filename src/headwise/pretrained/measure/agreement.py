"""Whether a model computes attention as its adapter says; if not, it would be damaged silently."""

from typing import Any

from torch import Tensor

from headwise.core.errors import require
from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.observe import Observed, observe
from headwise.pretrained.text.calibration import few_tokens

_LENGTH = 256
_TOLERANCE = 0.05  # of the norm: half precision differs by a hundredth


def require_described(
    model: Any, sites: list[AttentionSite], batches: list[dict[str, Tensor]]
) -> None:
    """Refuse a model whose layers do something else than what is said of them.

    What each layer gives its output projection is computed again from its projections, on a short
    sequence.
    """

    def look(layer: int, seen: Observed) -> None:
        again = seen.attend(seen.scores().softmax(-1)).transpose(1, 2).flatten(2)
        off = float((again - seen.context).norm() / seen.context.norm().clamp(min=1e-30))
        require(
            not off > _TOLERANCE,
            f"{seen.site.path} does not compute what is known of its family: its heads' outputs "
            f"differ by {off:.0%}. The model has something between projections and scores that "
            "its adapter does not describe, or the batches have padding; it would be damaged "
            "silently, so it is refused (docs/adapters.md says what an adapter can describe)",
        )

    observe(model, sites, few_tokens(batches, _LENGTH, _LENGTH)[:1], look)
