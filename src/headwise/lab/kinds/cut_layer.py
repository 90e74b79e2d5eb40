"""Kind "cut-layer": a decoder is trained, one layer is cut afterwards; what does that cost?"""

from typing import Any, Literal, get_args

from headwise.allocation.cut import Heads, check_can_be_cut, with_layer
from headwise.core.errors import require
from headwise.core.spec import spec
from headwise.lab.kinds._columns import columns
from headwise.lab.kinds._one_by_one import Reading, one_by_one
from headwise.lab.kinds._registry import Kind, Quantity, register
from headwise.lab.kinds._trained_decoder import TrainedDecoder, train_first, trained_decoder
from headwise.lab.run import Run
from headwise.nets.decoder import DecoderShape
from headwise.nets.shape import AttentionShape
from headwise.training import TextTraining

Way = Literal["dimension", "count", "nothing"]

_ERROR = Quantity.by_difference(
    "loss increase",
    "rise of the held-out loss after the cut, nats a token; negative where the loss fell",
    unit="nats a token",
    number=".4f",
)


@spec
class Cut:
    """Layer `layer` of the trained decoder keeps a share of its parameters.

    `way`: "dimension" narrows all heads of the layer; "count" removes those whose removal costs
    least; "nothing" only trains (so that the weights are there).
    """

    layer: int = 0
    way: Way = "nothing"
    keep: float = 1.0

    def __post_init__(self) -> None:
        require(self.way in get_args(Way), f"no way to cut is {self.way!r}")
        require(self.layer >= 0, f"there is no layer {self.layer}")
        require(0 < self.keep <= 1, "keep is a share, above 0 and at most 1")

    def kept(self, shape: DecoderShape) -> AttentionShape:
        """The layer's shape after the cut."""
        layer = shape.layers[self.layer]
        if self.way == "count":
            return AttentionShape(
                heads=max(1, round(self.keep * layer.heads)),
                qk_dim=layer.qk_dim,
                v_dim=layer.v_dim,
            )
        return AttentionShape(
            heads=layer.heads,
            qk_dim=max(1, round(self.keep * layer.qk_dim)),
            v_dim=max(1, round(self.keep * layer.v_dim)),
        )


def _measure(run: Run) -> Reading:
    """The increase of the held-out loss, nats a token."""
    known = trained_decoder(run.task, run.net, run.training, run.seed)
    after = known.loss if run.measure.way == "nothing" else _loss_after(known, run.measure)
    return Reading(after - known.loss, {"loss": after})


def _loss_after(known: TrainedDecoder, cut: Cut) -> float:
    index, layer, kept = cut.layer, known.shape.layers[cut.layer], cut.kept(known.shape)
    if cut.way == "count":
        stay = sorted(known.by_worth(index)[: kept.heads])
        return known.without(index, stay, known.held_out)
    heads = Heads.of(known.weights, index, layer)
    narrow = heads.narrowed(known.inputs[index], kept.qk_dim, kept.v_dim)
    return known.loss_of(*with_layer(known.shape, known.weights, index, narrow), known.held_out)


def _check(run: Run) -> None:
    check_can_be_cut(run.net)
    layer = run.measure.layer
    require(layer < len(run.net.layers), f"there is no layer {layer}")


def _cost(run: Run) -> float:
    """Training, which one of many runs does first; a cut is a few evaluations."""
    tokens = run.training.batch * run.task.length
    steps = run.training.steps if run.measure.way == "nothing" else 10
    return float(steps * tokens * run.net.params()["total"])


def _describe(run: Run) -> dict[str, Any]:
    cut, kept = run.measure, run.measure.kept(run.net)
    return {
        "text": run.task.name,
        "length": run.task.length,
        "layers": len(run.net.layers),
        "width": run.net.width,
        "layer": cut.layer,
        "way": cut.way,
        "keep": cut.keep,
        "heads": kept.heads,
        "head_dim": kept.qk_dim,
        "steps": run.training.steps,
    }


CUT_LAYER = register(
    Kind(
        name="cut-layer",
        error=_ERROR,
        columns=columns("text length layers width layer way keep heads head_dim steps"),
        describe=_describe,
        perform=one_by_one(_measure, _ERROR, "decoder", "trained, then cut", train_first),
        cost=_cost,
        facts=columns("loss"),
        nets=(DecoderShape,),
        training=TextTraining,
        measure=Cut,
        check=_check,
    )
)
