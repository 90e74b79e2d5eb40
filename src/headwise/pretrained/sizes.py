"""What a model loses at several sizes: predicted on a curve, measured at three points of it."""

from typing import Any

import pandas as pd
import torch

from headwise.core.errors import InputError
from headwise.core.progress import OnProgress, quiet
from headwise.pretrained._evaluate import quality
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.model.mode import evaluating
from headwise.pretrained.model.smaller import apply_plan
from headwise.pretrained.plan.allocate import Budget
from headwise.pretrained.plan.make import make_plan
from headwise.pretrained.text.calibration import Sample, to_device

MEASURED = (0.9, 0.75, 0.5)
_CURVE = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3)


def losses_by_size(
    model: Any, measurement: Measurement, sample: Sample, on_progress: OnProgress = quiet
) -> pd.DataFrame:
    """One row a share of the attention's parameters kept: damage predicted and, for some, measured.

    Shares that the model is too small for have no row.
    """
    known = _outputs(model, sample)
    rows: list[dict[str, float | None]] = []
    for done, share in enumerate(_CURVE, start=1):
        try:
            plan = make_plan(measurement, Budget(share))
        except InputError:
            continue
        assert plan.predicted_damage is not None
        row: dict[str, float | None] = {"kept": share, "predicted": plan.predicted_damage}
        if share in MEASURED:
            smaller = apply_plan(model, measurement, plan)
            verdict = quality(model, smaller, measurement.objective, sample, known=known)
            row |= {"measured": verdict.damage, "low": verdict.low, "high": verdict.high}
        rows.append(row)
        on_progress(done / len(_CURVE), "measuring the loss at several sizes")
    return pd.DataFrame(rows, columns=["kept", "predicted", "measured", "low", "high"])


@torch.no_grad()
def _outputs(model: Any, sample: Sample) -> list[Any]:
    """What the model says of the sample, which is small."""
    with evaluating(model):
        batches = to_device(sample.batches, next(model.parameters()).device)
        return [model(**inputs) for inputs in batches]
