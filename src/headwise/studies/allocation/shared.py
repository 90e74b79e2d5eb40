"""What the studies of trained decoders' layers share: the text, the decoders, the runs."""

from collections.abc import Iterable
from importlib import resources
from itertools import product

from headwise.lab.kinds.cut_layer import Cut
from headwise.lab.kinds.watched_attention import Watch
from headwise.lab.run import Run
from headwise.nets import AttentionShape, DecoderShape
from headwise.studies.differences import ALLOCATION_PAPER
from headwise.tasks.language import Language
from headwise.training import TextTraining

PAPER = ALLOCATION_PAPER
TEXT_NOTE = (
    "The text is the packaged one, 1.3 MB of prose, plays, encyclopaedias, code and several "
    "languages, read as bytes; its last tenth is held out."
)
CUT_NOTE = (
    "A head is narrowed to the nearest product of lower rank in mean square over what the layer "
    "reads (second moments of 48 training windows), and keeps its score's scale."
)


def packaged_text(length: int) -> Language:
    """The text that comes with headwise, in windows of this length."""
    file = resources.files("headwise") / "pretrained" / "text" / "packaged" / "calibration.txt"
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
    task = packaged_text(shape.length)
    return decoder_runs("cut-layer", task, shape, training, [Cut()], seeds)


def decoder_runs(
    kind: str,
    task: Language,
    shape: DecoderShape,
    training: TextTraining,
    measures: Iterable[Cut | Watch],
    seeds: int,
) -> list[Run]:
    """Every measurement of the trained decoder, all seeds."""
    return [
        Run(kind=kind, task=task, net=shape, training=training, measure=measure, seed=seed)
        for measure, seed in product(measures, range(seeds))
    ]
