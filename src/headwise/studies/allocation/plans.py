"""What `headwise plan` chose for the sizes of the allocation study's standard tier, by text.

    headwise plan --layers 6 --width 64 --length 128 --budget 98304 --seconds 280 --seed 100

with --text. It saw the text without the tenth that the study scores, and none of the study's seeds.
Its trials had half the width and half the length.
"""

from collections.abc import Mapping

from headwise.allocation.fill import Layers
from headwise.nets import AttentionShape


def _layers(*sizes: tuple[int, int, int]) -> Layers:
    return tuple(AttentionShape(heads=h, qk_dim=q, v_dim=v) for h, q, v in sizes)


PLANS: Mapping[str, Layers] = {
    "shakespeare": _layers(
        (2, 32, 32), (4, 12, 12), (2, 36, 36), (6, 8, 8), (3, 24, 24), (4, 20, 20)
    ),
    "wikipedia": _layers(
        (4, 32, 32), (4, 12, 12), (4, 12, 12), (4, 16, 16), (4, 12, 12), (4, 12, 12)
    ),
}  # fmt: skip
