"""On another device nothing may stay behind on the CPU: a step of every torch engine on `meta`.

Tensors of torch's device "meta" have a shape and no numbers. An operation on one of them and one
of the CPU is refused as it would be on a GPU.
"""

import pytest
import torch

from headwise.core.device import chosen_device, computing_on, find_device
from headwise.core.errors import InputError
from headwise.nets import AttentionNetShape, AttentionShape, ClassTokenShape, DecoderShape
from headwise.nets.base import TokenNetShape
from headwise.nets.encoder import EncoderShape
from headwise.training import Streaming, TextTraining, Training
from headwise.training.ensemble import Ensemble
from headwise.training.samples.stacked import StackedEngine, lanes
from headwise.training.text import loop

LAYER = AttentionShape(heads=2, qk_dim=4, v_dim=4)
TOKEN_NETS: dict[str, TokenNetShape] = {
    "attention": AttentionNetShape(token_dim=6, outputs=6, layer=LAYER, biases=True, query="each"),
    "encoder": EncoderShape(token_dim=6, outputs=6, width=6, layers=(LAYER, LAYER), ffn=8),
    "decoder": DecoderShape(
        vocabulary=0, token_dim=6, outputs=6, width=16, layers=(LAYER,), ffn=8, length=10
    ),
}
TEXT_NETS = {
    positions: DecoderShape(
        vocabulary=11,
        width=16,
        layers=(LAYER, LAYER),
        ffn=8,
        length=10,
        positions=positions,  # type: ignore[arg-type]
        qk_norm=positions == "rope",
    )
    for positions in ("learned", "rope")
}


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
def test_the_stacked_engine(layers: int, loss: str) -> None:
    shape = ClassTokenShape.standard(token_dim=4, heads=2, width=8, head_dim=4)
    shape = type(shape)(**{**vars(shape), "layers": shape.layers * layers})
    training = Training(steps=1, rate=1e-2, loss=loss)  # type: ignore[arg-type]
    engine = StackedEngine(shape, training, [shape.initial_params(0)], [0], "meta")
    inputs = torch.empty(lanes(shape), 3, 5, 4, device="meta")
    losses = engine._step(inputs, torch.empty(lanes(shape), 3, 1, device="meta"), 1e-2)
    assert losses.device.type == "meta"
    with pytest.raises(RuntimeError, match="device"):
        engine._step(inputs, torch.zeros(lanes(shape), 3, 1), 1e-2)  # what a mistake looks like


@pytest.mark.parametrize("name", TOKEN_NETS)
@pytest.mark.parametrize("together", [1, None])
def test_ensembles_of_token_networks(name: str, together: int | None) -> None:
    shape = TOKEN_NETS[name]
    params = [shape.initial_params(seed) for seed in (0, 1)]
    ensemble = Ensemble(shape, Streaming(steps=1, rate=1e-2), params, "meta", together)
    tokens = torch.empty(2, 3, 10, 6, device="meta")
    losses = ensemble.step(tokens, tokens, slice(None), 1e-2)
    assert losses.device.type == "meta"
    assert ensemble.predict(tokens[:1]).device.type == "meta"


@pytest.mark.parametrize("positions", TEXT_NETS)
def test_decoders_of_text(positions: str) -> None:
    shape = TEXT_NETS[positions]
    params = [shape.initial_params(seed) for seed in (0, 1)]
    ensemble = Ensemble(shape, TextTraining(steps=1, rate=1e-2), params, "meta")
    tokens = torch.zeros(2, 3, 11, dtype=torch.int64, device="meta")
    assert loop.descend_on(ensemble, tokens, 1e-2, 1.0).device.type == "meta"


def test_devices_are_chosen_by_name_and_only_if_they_are_here() -> None:
    assert chosen_device() == "cpu"
    with computing_on("auto") as found:
        assert chosen_device() == found == find_device("auto")
    assert chosen_device() == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="torch finds no cuda device here"):
            find_device("cuda")
    with pytest.raises(InputError, match="there is no device 'tpu'"):
        find_device("tpu")
