"""How much memory the sums of a measurement may take."""

from pathlib import Path
from typing import Any

import torch

_SHARE = 0.5  # of what is free: activations need room too
_UNKNOWN = 2**28  # where the system does not say


def sums_ceiling(model: Any, gigabytes: float | None) -> int:
    """Bytes: what the user allows, or half of what is free where the model is."""
    if gigabytes is not None:
        return int(gigabytes * 1e9)
    device = next(model.parameters()).device
    if device.type == "cuda":
        return int(_SHARE * torch.cuda.mem_get_info(device)[0])
    return int(_SHARE * free_bytes())


def free_bytes() -> int:
    """Memory that a process could take now, as Linux says; elsewhere a cautious guess."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return int(_UNKNOWN / _SHARE)
    for line in lines:
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return int(_UNKNOWN / _SHARE)
