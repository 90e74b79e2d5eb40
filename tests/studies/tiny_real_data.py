"""The studies on real data with networks that train in a second."""

from dataclasses import replace

from headwise.lab.run import Run
from headwise.studies.real_data.images import IMAGES, SIZES
from headwise.tasks import Images

ARMS = replace(
    SIZES["quick"].arms,
    heads=(1, 2),
    head_dim=4,
    width=8,
    held_heads=2,
    layers=1,
    training=replace(SIZES["quick"].arms.training, steps=4, batch=8),
    seeds=2,
)


def parts_of_data(tier: str, data: str) -> dict[str, list[Run]]:
    return ARMS.arms([Images.from_folder(data, frame=12, patch=4, size=8)])


TINY = replace(IMAGES, parts_of_data=parts_of_data)
