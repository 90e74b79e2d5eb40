"""What the studies of trained decoders' layers share: the text, the decoders, the training runs."""

from importlib import resources

import pandas as pd

from headwise.lab.kinds.cut_layer import Reduced
from headwise.lab.run import Run
from headwise.nets import AttentionShape, DecoderShape
from headwise.tasks.language import Language
from headwise.training import TextTraining

PAPER = "Allocation of parameters in transformers (arXiv 2510.03784)"
TEXT_NOTE = (
    "The text is the packaged one, 57 kB of prose and scenes from plays, read as bytes; its last "
    "tenth is held out."
)
CUT_NOTE = (
    "A head is narrowed to the nearest product of lower rank in mean square over what the layer "
    "reads (second moments of 48 training windows), and keeps its score's scale."
)


def packaged_text(length: int) -> Language:
    """The text that comes with headwise, in windows of this length."""
    file = resources.files("headwise") / "pretrained" / "text" / "calibration.txt"
    with resources.as_file(file) as path:
        return Language.from_file(path, length, name="packaged text")


def uniform_decoder(layers: int, heads: int, head_dim: int, length: int) -> DecoderShape:
    """A decoder on bytes; heads × head_dim is its width."""
    layer = AttentionShape(heads=heads, qk_dim=head_dim, v_dim=head_dim)
    width = heads * head_dim
    return DecoderShape(
        vocabulary=256, width=width, layers=(layer,) * layers, ffn=4 * width, length=length
    )


def training_runs(shape: DecoderShape, training: TextTraining, seeds: int) -> list[Run]:
    """The trainings that the measurements share; they cost most and go first."""
    task, net = packaged_text(shape.length), Reduced(shape=shape)
    return [Run(task=task, net=net, training=training, seed=seed) for seed in range(seeds)]


def nothing_published() -> pd.DataFrame:
    """The paper states orders and rates, and prints no numbers that we have."""
    return pd.DataFrame({"part": [], "error": []})
