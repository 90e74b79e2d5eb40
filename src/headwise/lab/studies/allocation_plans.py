"""What `headwise plan` found for the allocation study's sizes, by tier and text."""

from collections.abc import Mapping

from headwise.nets.shape import AttentionShape

Layers = tuple[AttentionShape, ...]


def _layers(*sizes: tuple[int, int, int]) -> Layers:
    return tuple(AttentionShape(heads=h, qk_dim=q, v_dim=v) for h, q, v in sizes)


PLANS: Mapping[tuple[str, str], Layers] = {}
