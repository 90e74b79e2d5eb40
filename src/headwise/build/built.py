"""What a construction returns: a network, its certificate, and the means to renew it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import pandas as pd

from headwise.build.budget import check_memory
from headwise.build.certify.certificate import Certificate
from headwise.build.lengths import of_length
from headwise.build.pattern import attention_rows
from headwise.build.recipe import Recipe
from headwise.core.errors import InputError
from headwise.core.files import write_file
from headwise.core.lazy import Drawn
from headwise.core.spec import to_data
from headwise.nets import ClassTokenNet, ClassTokenShape
from headwise.tasks.retrieval import Retrieval

_CERTIFICATE, _SPECIFICATION = "certificate.json", "specification.json"


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
        files = {_SPECIFICATION: specification, _CERTIFICATE: self.certificate.to_data()}
        self.net.save_pretrained(folder)
        for name, data in files.items():
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


@runtime_checkable
class Design(Protocol):
    """All about a network but its weights: its size is known before anything is allocated."""

    @property
    def task(self) -> Retrieval:
        """What the network is for."""
        ...

    @property
    def asked(self) -> float | None:
        """The error to certify, if one was asked for."""
        ...

    @property
    def shape(self) -> ClassTokenShape:
        """The network's shape."""
        ...

    def make(self) -> tuple[ClassTokenNet, Recipe]:
        """Allocate and fill the weights."""
        ...


def build_from(design: Design, max_bytes: int | None = None) -> Built:
    """The network with its certificate; refused where it does not fit, or errs too much."""
    check_memory(design.shape, max_bytes)
    net, recipe = design.make()
    certificate = recipe.certify(design.task, net)
    if design.asked is not None and not certificate.error <= design.asked:
        raise InputError(
            f"an error of {design.asked:g} cannot be certified: "
            + ", ".join(f"{term.name} {term.value:.2e}" for term in certificate.terms)
            + f" add up to {certificate.error:.4g}"
        )
    return Built(net, certificate, recipe)
