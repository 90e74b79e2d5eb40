"""What a construction returns: a network, its certificate, and the means to renew it."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import pandas as pd
import torch

from headwise.build.budget import check_memory
from headwise.build.certify.certificate import Certificate
from headwise.build.certify.precision import state_of
from headwise.build.lengths import of_length
from headwise.build.pattern import attention_rows
from headwise.build.recipe import Recipe
from headwise.core.errors import InputError, require
from headwise.core.files import appearing_files, write_file
from headwise.core.lazy import Drawn
from headwise.core.spec import to_data
from headwise.nets import ClassTokenNet, ClassTokenShape
from headwise.tasks.retrieval import Retrieval
from headwise.theory.checks import shown

_KEPT = 1.05  # of the rounding seen, for that of a slightly different network
CERTIFICATE, _SPECIFICATION = "certificate.json", "specification.json"


@dataclass(frozen=True)
class Built(Drawn):
    """A network with a certificate for its task; it is built in double precision.

    `float`, `double` and `bfloat16` give the network in another precision, with its own
    certificate.
    """

    drawn_by: ClassVar[str] = "headwise.report.constructions:draw_attention"

    net: ClassTokenNet
    task: Retrieval
    recipe: Recipe = field(repr=False)
    _known: list[Certificate] = field(repr=False, compare=False, default_factory=list)

    @property
    def certificate(self) -> Certificate:
        """For the network as it is now: computed anew once it was converted, refused if changed."""
        if not self._known or self._known[-1].state != state_of(self.net):
            self._known[:] = [self.recipe.certify(self.task, self.net)]
        return self._known[-1]

    def to(self, dtype: torch.dtype) -> "Built":
        """A copy of the network in another precision; its certificate is for that precision."""
        require(
            isinstance(dtype, torch.dtype) and dtype.is_floating_point,
            f"a network is converted to a floating-point dtype, not to {shown(dtype)}",
        )
        built = Built(copy.deepcopy(self.net).to(dtype), self.task, self.recipe)
        _ = built.certificate  # a precision without one is refused here
        return built

    def double(self) -> "Built":
        """In float64; weights that were rounded before stay so, and are certified so."""
        return self.to(torch.float64)

    def float(self) -> "Built":
        """In float32."""
        return self.to(torch.float32)

    def bfloat16(self) -> "Built":
        """In bfloat16."""
        return self.to(torch.bfloat16)

    def half(self) -> "Built":
        """In float16, for which there is no certificate: refused."""
        return self.to(torch.float16)

    def params(self) -> dict[str, int]:
        """Parameters by part; "mlp" is what the paper's M counts."""
        return self.net.shape.params()

    def at_length(self, length: int) -> "Built":
        """The same weights on sequences of another length, with a certificate for that length."""
        task = of_length(self.task, length, self.net.shape)
        built = Built(self.net, task, self.recipe)
        _ = built.certificate  # a length without one is refused here
        return built

    def attention(self, sequences: int = 3, seed: int = 0) -> pd.DataFrame:
        """Which token each head looks at in some sequences; this is what `figure` draws."""
        return attention_rows(self.net, self.task, sequences, seed)

    def save_pretrained(self, folder: str | Path) -> None:
        """Weights, specification and certificate: all of them, or the folder is as it was."""
        heads = self.net.shape.layers[0].heads
        specification = {"task": to_data(self.task), "heads": heads, **self.recipe.to_data()}
        files = {_SPECIFICATION: specification, CERTIFICATE: self.certificate.to_data()}
        with appearing_files(folder, last=CERTIFICATE) as scratch:
            self.net.save_pretrained(scratch)
            for name, data in files.items():
                text = json.dumps(data, indent=2, ensure_ascii=False)
                write_file(scratch / name, f"{text}\n")

    def to_data(self) -> dict[str, Any]:
        """The certificate and the number of parameters, as JSON data."""
        return self.certificate.to_data() | {"params": self.params()}

    def __str__(self) -> str:
        layer, counts = self.net.shape.layers[0], self.params()
        return (
            f"{self.certificate}\nnetwork: {layer.heads} heads of dimension {layer.v_dim}, "
            f"{counts['total']:,} parameters ({counts['mlp']:,} in encoder and readout), "
            f"{self.certificate.precision.name}"
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

    @property
    def again(self) -> "Callable[[float], Design] | None":
        """The design that keeps so much of the error for rounding, if another may be tried."""
        ...

    def make(self) -> tuple[ClassTokenNet, Recipe]:
        """Allocate and fill the weights."""
        ...


def build_from(design: Design, max_bytes: int | None = None) -> Built:
    """The network with its certificate; refused where it does not fit, or errs too much.

    Rounding is known once the weights are. Where it takes more than was kept for it, and leaves
    something, a second design keeps what it took and a little more.
    """
    check_memory(design.shape, max_bytes)
    net, recipe = design.make()
    built = Built(net, design.task, recipe)
    certificate = built.certificate
    if design.asked is None or certificate.error <= design.asked:
        return built
    rounding = _KEPT * certificate.term("float arithmetic").value
    if design.again is not None and rounding < design.asked:
        return build_from(design.again(rounding), max_bytes)
    raise InputError(
        f"an error of {design.asked:g} cannot be certified: "
        + ", ".join(f"{term.name} {term.value:.2e}" for term in certificate.terms)
        + f" add up to {certificate.error:.4g}; a smaller box of tokens or a larger error helps"
    )
