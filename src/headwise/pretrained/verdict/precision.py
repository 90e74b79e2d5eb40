"""What arithmetic of sixteen bits adds to a verdict that was reached in float32.

A model in half precision is compared in float32 on a CPU (see `model.mode`). Who runs both in their
own precision finds their rounding besides what was cut, and numbers beyond 65504 are none in
float16. So both are run on a few inputs as they are written.
"""

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.core.errors import require
from headwise.pretrained._evaluate import quality
from headwise.pretrained.measure.comparing import Objective
from headwise.pretrained.model.mode import is_widened, narrowed
from headwise.pretrained.text.calibration import Sample, few_tokens

_TEXT = (128, 64)  # tokens, and the longest input: a CPU may take 35 times as long for them
_SHORT_TEXTS = (256, 16)  # the same where a text has one answer, of which a few tell nothing
_ANSWERS = 16  # that tell how much rounding adds
_NUMBERS = 2**19  # of images or sound
_FACTOR = 1.5  # of the damage in float32: rounding that adds more than that is said
_SEEN = 1e-6  # less damage is rounding in float32


@dataclass(frozen=True)
class OwnPrecision:
    """The damage on a few inputs, computed in the models' own precision and in float32."""

    dtype: str
    damage: float
    in_float32: float
    original_is_finite: bool
    why_not_run: str = ""  # torch's words, where the original does not run in it here

    def warnings(self) -> list[str]:
        """What a user who runs the models in their own precision has to know."""
        if self.why_not_run:
            return [
                f"in {self.dtype}, its own precision, the original does not run here "
                f"({self.why_not_run}); the verdicts are those of float32"
            ]
        if not self.original_is_finite:
            return [
                f"computed in {self.dtype}, its own precision, the original's outputs are not "
                "finite numbers; the verdicts are those of float32"
            ]
        if self.damage <= max(_FACTOR * self.in_float32, _SEEN):
            return []
        return [
            f"the verdicts are of both models computed in float32; computed in {self.dtype}, their "
            f"own precision, rounding adds to the damage: {self.damage:.2g} instead of "
            f"{self.in_float32:.2g} on a few of the inputs"
        ]


def in_own_precision(
    original: Any, compressed: Any, objective: Objective, batches: list[dict[str, Tensor]]
) -> OwnPrecision | None:
    """Both models as they are written, on a few inputs; None where they are compared as such.

    Refused is a compressed model whose outputs are no numbers there, if the original's are.
    """
    if not is_widened(original):
        return None
    few = _few(original, objective, batches)
    wide = quality(original, compressed, objective, Sample(few, "")).damage
    before, after = (narrowed(copy.deepcopy(model)) for model in (original, compressed))
    dtype = next(before.parameters()).dtype
    sample = Sample([_in(batch, dtype) for batch in few], "")
    name = str(dtype).removeprefix("torch.")
    try:
        itself = quality(before, before, objective, sample).damage
    except RuntimeError as error:  # torch may have no such kernel for this machine
        return OwnPrecision(name, math.nan, wide, False, " ".join(str(error).split()))
    own = quality(before, after, objective, sample).damage
    found = OwnPrecision(name, own, wide, original_is_finite=math.isfinite(itself))
    require(
        math.isfinite(own) or not found.original_is_finite,
        f"computed in {name}, its own precision, the compressed model's outputs are not finite "
        "numbers, and the original's are; nothing is written. Keep more, or give the model in "
        "bfloat16 or float32",
    )
    return found


def _few(
    original: Any, objective: Objective, batches: list[dict[str, Tensor]]
) -> list[dict[str, Tensor]]:
    if "input_ids" in batches[0]:
        few = few_tokens(batches, *_TEXT)
        if _answers(original, objective, few[0]) * len(few) >= _ANSWERS:
            return few
        return few_tokens(_one_by_one(batches), *_SHORT_TEXTS)
    row = sum(value[0].numel() for value in batches[0].values())
    rows = max(1, _NUMBERS // row)
    return [{name: value[:rows] for name, value in batches[0].items()}]


@torch.no_grad()
def _answers(model: Any, objective: Objective, batch: dict[str, Tensor]) -> float:
    """In how many units the damage on a batch is counted."""
    outputs = model(**batch)
    return float(objective.compare(outputs, outputs, batch).units.sum())


def _one_by_one(batches: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
    rows = [(batch, row) for batch in batches for row in range(len(batch["input_ids"]))]
    return [{name: value[row : row + 1] for name, value in batch.items()} for batch, row in rows]


def _in(batch: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    return {name: x.to(dtype) if x.is_floating_point() else x for name, x in batch.items()}
