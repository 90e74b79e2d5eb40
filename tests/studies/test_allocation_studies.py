"""Cut and watched decoders: measured right; and claims that tell a yes from a no."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headwise.core.errors import InputError
from headwise.core.progress import quiet
from headwise.lab.kinds.cut_layer import Cut
from headwise.lab.kinds.watched_attention import Watch
from headwise.lab.run import Run
from headwise.lab.work import perform
from headwise.nets.decoder import DecoderShape
from headwise.studies.allocation import dimension_or_count, saturation, shared
from headwise.studies.allocation.dimension_or_count import DIMENSION_OR_COUNT
from headwise.studies.allocation.saturation import SATURATION
from headwise.training import TextTraining

TRAINING = TextTraining(steps=30, rate=0.01, batch=8, validation=8, evaluations=1)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWISE_CACHE", str(tmp_path))


def do(kind: str, shape: DecoderShape, measure: Cut | Watch) -> dict[str, float]:
    task = shared.packaged_text(32)
    run = Run(kind=kind, task=task, net=shape, training=TRAINING, measure=measure, seed=0)
    (record,) = perform([run], quiet)
    return {"error": record.result["error"], **record.result["facts"]}


def cut(shape: DecoderShape, measure: Cut) -> dict[str, float]:
    return do("cut-layer", shape, measure)


def test_cuts_of_everything_and_of_nothing() -> None:
    shape = shared.uniform_decoder(2, 4, 8, 32)
    base = cut(shape, Cut())
    assert base["error"] == 0
    assert 2 < base["loss"] < 5.6  # below log 256: it has learnt something
    whole = cut(shape, Cut(layer=1, way="dimension", keep=1.0))
    assert whole["error"] == pytest.approx(0, abs=1e-4)
    losses = [
        cut(shape, Cut(layer=0, way="dimension", keep=keep))["error"] for keep in (0.125, 0.25, 0.5)
    ]
    assert losses[0] > losses[2] > -0.01
    fewer = cut(shape, Cut(layer=0, way="count", keep=0.25))
    assert abs(fewer["error"]) < 1
    kept = Cut(layer=0, way="count", keep=0.25).kept(shape)
    assert (kept.heads, kept.qk_dim) == (1, 8)
    with pytest.raises(InputError, match="there is no layer 2"):
        cut(shape, Cut(layer=2))


def test_narrower_heads_move_attention_more_and_the_certificate_holds() -> None:
    shape = shared.uniform_decoder(2, 2, 8, 32)
    for weights in ("trained", "random", "independent"):
        moved = []
        for rank in (1, 4, 8):
            found = {
                what: do(
                    "watched-attention",
                    shape,
                    Watch(weights=weights, rank=rank, length=32, what=what),  # type: ignore[arg-type]
                )
                for what in ("rows", "outputs")
            }
            assert found["rows"]["excess"] <= 1e-9
            assert found["rows"]["shift"] <= found["rows"]["bound"]
            moved.append((found["rows"]["error"], found["outputs"]["error"]))
        for before, after in ((moved[0], moved[1]), (moved[1], moved[2])):
            assert before[0] > after[0]
            assert before[1] > after[1]
        assert moved[2] == pytest.approx((0, 0), abs=1e-6)  # all of the rank
    with pytest.raises(InputError, match="rank is 9"):
        do("watched-attention", shape, Watch(weights="random", rank=9, length=32, what="rows"))


def cut_table(dimension: list[float], count: list[float]) -> pd.DataFrame:
    """Increases by layer; less is kept, more is lost."""
    rows = [
        {"part": "cuts", "layer": layer, "way": way, "keep": keep, "seed": seed}
        | {"error": losses[layer] / keep * (1 + 0.1 * seed), "diverged": False}
        for way, losses in (("dimension", dimension), ("count", count))
        for layer, keep, seed in product(range(len(losses)), (0.25, 0.5, 0.75), range(2))
    ]
    return pd.DataFrame(rows)


def test_the_claims_of_dimension_or_count() -> None:
    better = cut_table([0.02, 0.01, 0.003, 0.002], [0.04, 0.02, 0.01, 0.01])
    worse = cut_table([0.04, 0.02, 0.01, 0.02], [0.02, 0.01, 0.003, 0.01])
    mixed = cut_table([0.002, 0.02, 0.03, 0.03], [0.001, 0.04, 0.09, 0.09])
    statuses = [
        [claim.check(table).status for claim in DIMENSION_OR_COUNT.claims]
        for table in (better, worse, mixed)
    ]
    assert statuses[0] == ["holds"] * 3
    assert statuses[1] == ["does not hold", "does not hold", "holds"]
    assert statuses[2] == ["holds", "does not hold", "does not hold"]
    assert dimension_or_count.finding(worse).sentence.startswith(
        "Narrowing heads costs more than removing some"
    )
    assert not dimension_or_count.finding(better[better["layer"] > 9]).conclusive


def watched(rows: float, outputs: float, layers: tuple[float, float]) -> pd.DataFrame:
    table = [
        {"part": part, "weights": weights, "rank": rank, "length": length, "seed": 0}
        | {"error": length**power / rank, "shift": 0.1, "bound": 0.2, "excess": -0.1}
        | {"layer_0": layers[0], "layer_1": layers[1], "diverged": False}
        for part, power in (("rows", rows), ("outputs", outputs))
        for weights, rank, length in product(saturation.WEIGHTS, (1, 4), (16, 64, 256))
    ]
    return pd.DataFrame(table)


def test_the_claims_of_saturation() -> None:
    forgiving = watched(-0.5, -0.3, (0.2, 0.1))
    assert [claim.check(forgiving).status for claim in SATURATION.claims] == ["holds"] * 5
    rows_only = watched(-0.5, 0.0, (0.1, 0.095))
    statuses = [claim.check(rows_only).status for claim in SATURATION.claims]
    assert statuses == ["holds", "does not hold", "holds", "holds", "does not hold"]
    assert "its output hardly does" in saturation.finding(rows_only).sentence
    broken = forgiving.assign(excess=0.01)
    assert saturation.certificate_holds(broken).status == "does not hold"
    slopes = saturation.slopes(forgiving, "rows")["power"]
    assert np.allclose(slopes, -0.5)
