"""The head-count paper's experiment on CIFAR-10 (arXiv 2510.06662, Tables 8 and 9)."""

from dataclasses import dataclass, replace

from headwise.core.errors import require
from headwise.lab.run import Run
from headwise.lab.study import Study, tiers_of
from headwise.studies.published import published_tables
from headwise.studies.real_data import claims, shared
from headwise.studies.real_data.arms import GROWING, SMALL, TITLES, ArmSizes
from headwise.tasks.images import CIFAR10, Images
from headwise.training import ChoiceTraining


@dataclass(frozen=True)
class ImageSize:
    """A tier: its networks, and the images they learn from."""

    arms: ArmSizes
    frames: tuple[int, ...]
    patch: int
    train: int
    held_out: int

    def tasks(self) -> list[Images]:
        """CIFAR-10 in frames of every side."""
        return [CIFAR10.task(frame, self.patch, self.train, self.held_out) for frame in self.frames]


SIZES = {
    "quick": ImageSize(arms=SMALL, frames=(32,), patch=8, train=400, held_out=500),
    "standard": ImageSize(
        arms=replace(SMALL, training=ChoiceTraining(steps=250, rate=4e-3, batch=32)),
        frames=(32, 48),
        patch=8,
        train=800,
        held_out=1_000,
    ),
    "full": ImageSize(
        arms=ArmSizes(
            heads=(1, 2, 4, 8, 10, 11, 12, 13, 14, 16, 20, 24),
            head_dim=16,
            width=240,
            held_heads=4,
            layers=4,
            training=ChoiceTraining(
                steps=39_000, rate=1e-3, batch=128, weight_decay=0.05, evaluations=10
            ),
            seeds=5,
            dropout=0.1,
        ),
        frames=(32, 48, 64, 96, 128),
        patch=4,
        train=50_000,
        held_out=10_000,
    ),
}


def parts(tier: str) -> dict[str, list[Run]]:
    """The three arms on CIFAR-10."""
    size = SIZES[tier]
    return size.arms.arms(size.tasks())


def parts_of_data(tier: str, data: str) -> dict[str, list[Run]]:
    """The same on CIFAR-10 from a folder, or on images in folders of one's own."""
    size = SIZES[tier]
    first = Images.from_folder(data, frame=size.frames[0], patch=size.patch)
    least = min(first.train, first.held_out)
    require(least >= 16, f"{data} has {least} images in a split; 16 or more are needed")
    first = replace(
        first, train=min(size.train, first.train), held_out=min(size.held_out, first.held_out)
    )
    return size.arms.arms([replace(first, frame=frame) for frame in size.frames])


IMAGES = Study(
    name="images",
    title="Heads or width, on images?",
    question=(
        "The paper's vision transformers get better on CIFAR-10 as heads are added, and wider with "
        "every head. Is it the heads, or the width?"
    ),
    paper=shared.PAPER,
    tiers=tiers_of(
        parts,
        {
            "quick": "about 2½ CPU-minutes: 1½ minutes on two cores",
            "standard": "about 14 CPU-minutes",
            "full": "the paper's setting, for GPUs: about 370,000 CPU-hours at the 27 GFLOP/s that "
            "a core was measured to do, 500 GPU-hours at 20 TFLOP/s",
        },
    ),
    parts=TITLES,
    published=lambda: published_tables({GROWING: "head_count_table8.csv"}),
    claims=shared.shared_claims("Table 8", "Table 9"),
    figures=shared.shared_figures("Table 8", "frame"),
    finding=claims.finding("Images: {data}.", "the standard tier, or more seeds"),
    setting=("frame", "heads", "total_width"),
    rows=("part", "heads", "total_width"),
    columns="frame",
    score="mean",
    texts=(CIFAR10,),
    parts_of_data=parts_of_data,
    notes=(
        shared.ARMS_NOTE,
        shared.SCORE_NOTE,
        "Published beside ours are the numbers of Table 8 for the same heads and frame. What "
        "differs below the full tier: 400 or 800 training images instead of 50,000, 8 numbers a "
        "head instead of 16, patches of 8 instead of 4 pixels (frames of 32 and 48 are 17 and 37 "
        "tokens instead of 65 and 145), 10 passes over the images, no dropout. The paper's text "
        "says patch 8, its tables have the lengths of patch 4.",
        "Images stand at random places in their frames, the same in every pass; the border has "
        "the colours of the image's edge. Held out is the standard test split.",
        shared.TRAINING_NOTE,
        shared.SEEDS_NOTE,
        "CIFAR-10: headwise study fetch images; or --data FOLDER.",
    ),
)
