"""What `headwise plan` found for the allocation study's sizes, by tier and text."""

from collections.abc import Mapping

from headwise.nets import AttentionShape

Layers = tuple[AttentionShape, ...]


def _layers(*sizes: tuple[int, int, int]) -> Layers:
    return tuple(AttentionShape(heads=h, qk_dim=q, v_dim=v) for h, q, v in sizes)


# headwise plan --layers 6 --width 64 --length 128 --budget 98304 --seconds 1800 --jobs 1 --seed 100
# --text … chose this for both; seeds from 100 on, so none that the study uses.
_STANDARD = _layers(
    (2, 32, 36), (3, 20, 20), (3, 20, 20), (5, 12, 12), (6, 12, 12), (8, 8, 8)
)  # fmt: skip

PLANS: Mapping[tuple[str, str], Layers] = {
    ("standard", "shakespeare"): _STANDARD,
    ("standard", "wikipedia"): _STANDARD,
}
