"""How a sentence encoder's embedding is read: what its checkpoint says."""

import json
from pathlib import Path
from typing import Any

from headwise.core.errors import InputError, require
from headwise.pretrained.measure.objectives import Embedding, objective_for

_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_lasttoken": "last",
}


def recorded_pool(name: str) -> str | None:
    """From `1_Pooling/config.json` in the model's folder, where sentence-transformers keep it."""
    path = Path(name) / "1_Pooling" / "config.json"
    if not path.is_file():
        return None
    try:
        modes = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    chosen = [mode for mode, on in modes.items() if mode.startswith("pooling_mode") and on is True]
    require(
        len(chosen) == 1 and chosen[0] in _MODES,
        f"{path} pools by {', '.join(chosen) or 'nothing'}; headwise knows cls, mean and last: say "
        "which with pool",
    )
    return _MODES[chosen[0]]


def pool_of(model: Any, name: str, pool: str | None) -> str | None:
    """What the user says, else what the checkpoint says; None for models that do not embed."""
    embeds = isinstance(objective_for(model, pool), Embedding)
    return recorded_pool(name) if pool is None and embeds else pool
