"""What a construction returns: a network, its certificate, and the means to renew it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import torch

from headwise.build.budget import Known
from headwise.build.certify.certificate import Certificate, Term
from headwise.build.certify.rounding import Arrays, Rounding, rounding
from headwise.build.lengths import of_length
from headwise.build.maps.relu import Network, gamma
from headwise.build.pattern import attention_rows
from headwise.core.files import write_file
from headwise.core.lazy import Drawn
from headwise.core.spec import to_data
from headwise.nets.module import ClassTokenNet
from headwise.nets.shape import ClassTokenShape
from headwise.tasks.retrieval import Retrieval

CERTIFICATE, SPECIFICATION = "certificate.json", "specification.json"


@runtime_checkable
class Recipe(Protocol):
    """How a construction certifies its network for a task."""

    def certify(self, task: Retrieval, net: ClassTokenNet) -> Certificate:
        """The certificate of `net` for the task."""
        ...

    def to_data(self) -> dict[str, Any]:
        """What, with the task, makes the same network again."""
        ...


@dataclass(frozen=True)
class Built(Drawn):
    """A network in double precision with a certificate for its task."""

    drawn_by: ClassVar[str] = "headwise.report.constructions:draw_attention"

    net: ClassTokenNet
    certificate: Certificate
    recipe: Recipe = field(repr=False)

    @property
    def task(self) -> Retrieval:
        """What the network computes, within the certified error."""
        return self.certificate.task

    def params(self) -> dict[str, int]:
        """Parameters by part; "mlp" is what the paper's M counts."""
        return self.net.shape.params()

    def at_length(self, length: int) -> "Built":
        """The same weights on sequences of another length, with a certificate for that length."""
        task = of_length(self.task, length, self.net.shape)
        return Built(self.net, self.recipe.certify(task, self.net), self.recipe)

    def attention(self, sequences: int = 3, seed: int = 0) -> pd.DataFrame:
        """Which token each head looks at in some sequences; this is what `figure` draws."""
        return attention_rows(self.net, self.task, sequences, seed)

    def save_pretrained(self, folder: str | Path) -> None:
        """Weights, specification and certificate; each file appears whole or not at all."""
        heads = self.net.shape.layers[0].heads
        specification = {"task": to_data(self.task), "heads": heads, **self.recipe.to_data()}
        papers = {SPECIFICATION: specification, CERTIFICATE: self.certificate.to_data()}
        self.net.save_pretrained(folder)
        for name, data in papers.items():
            text = json.dumps(data, indent=2, ensure_ascii=False)
            write_file(Path(folder, name), f"{text}\n")

    def to_data(self) -> dict[str, Any]:
        """The certificate and the number of parameters, as JSON data."""
        return self.certificate.to_data() | {"params": self.params()}

    def __str__(self) -> str:
        layer, counts = self.net.shape.layers[0], self.params()
        return (
            f"{self.certificate}\nnetwork: {layer.heads} heads of dimension {layer.v_dim}, "
            f"{counts['total']:,} parameters ({counts['mlp']:,} in encoder and readout), double "
            "precision"
        )


def make_net(shape: ClassTokenShape, arrays: Arrays) -> ClassTokenNet:
    """A network in double precision; what `arrays` leaves out is zero."""
    params = {
        name: torch.from_numpy(np.ascontiguousarray(arrays[name], np.float64))
        if name in arrays
        else torch.zeros(size, dtype=torch.float64)
        for name, size in shape.parameter_shapes().items()
    }
    return ClassTokenNet(shape, params).requires_grad_(False)


def as_arrays(prefix: str, network: Network) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A network's weights under the names of an MLP's parameters, and its slack."""
    weights, slack = {}, {}
    for index, each in enumerate(network):
        weights[f"{prefix}.{index}.weight"] = each.weight
        weights[f"{prefix}.{index}.bias"] = each.bias
        slack[f"{prefix}.{index}"] = each.slack
    return weights, slack


def round_off(
    task: Retrieval, net: ClassTokenNet, known: Known, slack: Mapping[str, np.ndarray]
) -> tuple[Rounding, float]:
    """The network's rounding, and that of the target when it is evaluated to compare with."""
    params = {name: value.detach().numpy() for name, value in net.named_parameters()}
    features, outer = known.features, known.outer
    target = outer.spread(gamma(task.token_dim + 16) * features.terms)
    target += gamma(task.intrinsic_dim + 16) * float(outer.terms.max())
    return rounding(net.shape, params, slack, known.box, task.length), target


def approximation_terms(
    known: Known, features_error: np.ndarray, why: tuple[str, str], outer_error: float
) -> tuple[Term, Term]:
    """The terms for the features and for the outer map."""
    each = ", ".join(f"{error:.3g}" for error in features_error)
    spread = known.outer.spread(features_error)
    reason = why[0] if known.features.exact else f"{why[0]}; each f_i within {each}"
    return (
        Term("features", 0.0 if known.features.exact else spread, reason),
        Term("outer map", outer_error, why[1]),
    )
