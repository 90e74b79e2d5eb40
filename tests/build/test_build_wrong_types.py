"""Whatever is passed to a construction, it builds or says a sentence: nothing else comes out."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from headwise import build
from headwise.core.errors import InputError
from headwise.nets import ClassTokenNet, ClassTokenShape
from headwise.tasks import Neighbours, max_plus_min
from junk import complaints

TASK = max_plus_min(4)
NET = ClassTokenNet(ClassTokenShape.standard(token_dim=1, heads=1))
BUILT = build.retrieval(TASK, 0.1)

CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (build.retrieval, {"task": TASK, "error": 0.1, "heads": 2, "box": (0.0, 1.0)}),
    (build.retrieval, {"task": TASK, "temperature": 0.1, "max_bytes": 10**8}),
    (build.memorise, {"task": TASK, "error": 0.3, "box": (0.0, 1.0), "max_bytes": 10**8}),
    (build.readout_lipschitz, {"net": NET}),
    (
        build.full_rank_head,
        {"task": Neighbours(dim=3, points=2), "sharpness": 10.0, "kind": "hardmax"},
    ),
    (
        build.full_rank_encoder,
        {
            "task": Neighbours(dim=3, points=3, target="farthest", form="self"),
            "sharpness": 10.0,
            "gain": 10.0,
            "kind": "softmax",
        },
    ),
    (build.random_features_layer, {"dim": 3, "heads": 2, "seed": 0, "draw": "aligned"}),
    (build.majority_vote, {"dim": 3, "heads": 2, "seed": 0}),
    (build.vote_task, {"dim": 3}),
    (
        build.as_retrieval,
        {"function": lambda x: x.sum((1, 2)), "length": 2, "token_dim": 1, "lipschitz": 1.0}
        | {"curvature": 1.0, "features": "coordinates"},
    ),
    (build.banded_layer, {"dim": 3}),
    (build.BandedNeighbour, {"dim": 3}),
    (build.nearly_full_rank_layer, {"dim": 4}),
    (build.check_network_assumptions, {"net": NET, "box": (0.0, 1.0)}),
    (BUILT.certificate.attack, {"seconds": 0.01, "seed": 0, "rounds": 1}),
    (BUILT.at_length, {"length": 3}),
    (build.frontier, {"lengths": [4], "tasks": {"extremes": max_plus_min}, "errors": (0.3, 0.2)}),
    (build.compare_witnesses, {"nets": {"one": {1: NET}}, "task": TASK, "steps": 2, "starts": 2}),
    (BUILT.attention, {"sequences": 2, "seed": 0}),
    (BUILT.to, {"dtype": torch.float32}),
]


@pytest.mark.parametrize(("call", "good"), CALLS, ids=lambda part: getattr(part, "__name__", ""))
@pytest.mark.filterwarnings("ignore:overflow")
def test_only_sentences_come_out(call: Callable[..., Any], good: dict[str, Any]) -> None:
    call(**good)
    assert complaints(call, good) == []


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("net", "net"),
        ("net", None),
        ("task", "paper"),
        ("lipschitz", "steep"),
        ("box", "wide"),
        ("box", (1.0, 0.0)),
        ("box", 3),
        ("reach", -1),
        ("reach", "far"),
        ("starts", 1),
        ("starts", "many"),
        ("steps", 2.5),
        ("seed", None),
        ("seed", -1),
    ],
)
def test_a_search_for_a_witness_refuses_before_it_searches(name: str, bad: Any) -> None:
    with pytest.raises(InputError):
        build.witness(**{"net": NET, "task": TASK, "starts": 2, "steps": 2, name: bad})


@pytest.mark.parametrize(
    "options",
    [
        {"lengths": "16"},
        {"lengths": []},
        {"lengths": [2.5]},
        {"lengths": 16},
        {"errors": [0.1]},
        {"errors": "small"},
        {"errors": [0.1, None]},
        {"tasks": "paper"},
        {"box": "wide"},
    ],
    ids=str,
)
def test_a_frontier_refuses_what_is_none(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        build.frontier(**{"lengths": [4], "errors": (0.3, 0.2)} | options)
