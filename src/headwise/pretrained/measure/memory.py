"""How much memory the sums of a measurement take, and may take."""

from typing import Any

import torch

from headwise.core.memory import free_bytes
from headwise.pretrained.adapters import AttentionSite

_SHARE = 0.5  # of what is free: activations need room too
LARGE = 5e8  # bytes of sums that are said


def sums_ceiling(model: Any, gigabytes: float | None) -> int:
    """Bytes: what the user allows, or half of what is free where the model is."""
    if gigabytes is not None:
        return int(gigabytes * 1e9)
    device = next(model.parameters()).device
    if device.type == "cuda":
        return int(_SHARE * torch.cuda.mem_get_info(device)[0])
    return int(_SHARE * free_bytes())


def statistics_bytes(site: AttentionSite) -> int:
    """Memory of one layer's sums (float64)."""
    head = 5 * site.heads * site.head_dim**2
    rows, keys = site.heads * site.head_dim, site.kv_heads * site.head_dim
    head += site.hidden**2 + rows**2
    if not site.rotary:
        return 8 * head
    gain = site.kv_heads * (site.group_size * site.head_dim) ** 2
    return 8 * (head + gain + rows**2 + keys**2 + 2 * site.hidden**2)


def passes(sites: list[AttentionSite], memory: int) -> list[list[AttentionSite]]:
    """The layers in runs whose sums fit into `memory` bytes, never less than one layer."""
    runs: list[list[AttentionSite]] = []
    for site in sites:
        used = sum(statistics_bytes(s) for s in runs[-1]) if runs else 0
        if runs and used + statistics_bytes(site) <= memory:
            runs[-1].append(site)
        else:
            runs.append([site])
    return runs


def described(runs: list[list[AttentionSite]], index: int) -> str:
    """What a pass does, and the memory that it takes where that is large."""
    room = sum(map(statistics_bytes, runs[index]))
    said = f", pass {index + 1} of {len(runs)}" if len(runs) > 1 else ""
    return f"measuring sensitivity{said}" + (f", {room / 1e9:.1f} GB" if room > LARGE else "")
