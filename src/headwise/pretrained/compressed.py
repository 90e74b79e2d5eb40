"""What a compression gives: the smaller model and the truth about it."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from headwise.core.errors import require
from headwise.pretrained._evaluate import Evaluation, TextVerdict, damage_shown
from headwise.pretrained.closeup.sizes import SizePoint
from headwise.pretrained.closeup.texts import Continuation
from headwise.pretrained.measure.certificate import HeadCertificate
from headwise.pretrained.model.saving import checkpoint_bytes, save_compressed
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.uniform import opens_in_stock
from headwise.pretrained.shown import Shown, called
from headwise.pretrained.verdict.gate import Answer, answer, gate_sentence


@dataclass(repr=False)
class Compressed(Shown):
    """A compressed model with its plan, its comparison with the original, and its certificates.

    `sizes` and `texts` are for the page, and empty where none was asked for.
    """

    drawn_by: ClassVar[str] = "headwise.report.compression:draw"

    name: str
    model: Any
    plan: CompressionPlan
    evaluation: Evaluation
    certificates: list[HeadCertificate]
    recovery: list[float]
    calibration: str
    warnings: list[str] = field(default_factory=list)
    max_loss: float | None = None
    tokenizer: Any = None
    folder: Path | None = None
    sizes: list[SizePoint] = field(default_factory=list)
    texts: list[Continuation] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What a page about it is called."""
        return f"{called(self.name)}, compressed"

    @property
    def passed(self) -> bool | None:
        """Whether the damage is shown to be within `max_loss`; None where no gate was set."""
        return None if self.gate is None else self.gate == "within"

    @property
    def gate(self) -> Answer | None:
        """By the damage's whole interval: "within" `max_loss`, "above", or "not told"."""
        return None if self.max_loss is None else answer(self._verdict, self.max_loss)

    @property
    def _verdict(self) -> TextVerdict:
        return self.evaluation.verdicts[0]

    @property
    def bytes_on_disk(self) -> int | None:
        """What the saved weights take; None before `save`."""
        return None if self.folder is None else checkpoint_bytes(self.folder)

    def save(self, folder: str | Path) -> Path:
        """Write a new folder that `headwise.from_pretrained` opens: whole, or not at all."""
        if self.max_loss is not None:
            require(
                self.gate == "within",
                f"{gate_sentence(self._verdict, self.max_loss)}; set max_loss to None to write it "
                "all the same",
            )
        folder = Path(folder)
        report = self.to_data()
        save_compressed(self.model, folder, plan=self.plan, report=report, tokenizer=self.tokenizer)
        self.folder = folder
        return folder

    def to_pandas(self) -> pd.DataFrame:
        """One row a quantity: original, compressed, ratio."""
        return pd.DataFrame(
            [
                {"": name, "original": pair.original, "compressed": pair.compressed}
                | {"ratio": pair.ratio}
                for name, pair, _ in self.evaluation.rows()
            ]
        )

    def cells(self) -> pd.DataFrame:
        """The same, rounded for reading."""
        return pd.DataFrame(
            [
                {"": name, "original": f"{pair.original:{form}}"}
                | {"compressed": f"{pair.compressed:{form}}", "ratio": f"{pair.ratio:.3f}"}
                for name, pair, form in self.evaluation.rows()
            ]
        )

    def heads(self) -> pd.DataFrame:
        """One row a head that is left: its sizes, and how far its attention moves."""
        bounds = {(c.layer, c.head): c for c in self.certificates}
        rows = []
        for layer, shape in enumerate(self.plan.layers):
            for group, each in enumerate(shape.groups):
                for head in each.heads:
                    row: dict[str, float] = {"layer": layer, "head": head, "key_head": group}
                    row |= {"qk_dim": each.qk_dim, "v_dim": each.v_dim}
                    if (layer, head) in bounds:
                        certificate = bounds[layer, head]
                        row |= {"bound": certificate.bound, "measured": certificate.measured}
                    rows.append(row)
        return pd.DataFrame(rows)

    def sentences(self) -> list[str]:
        """The loss, the certificates, the verdict, and how to open what was written."""
        judged = self.evaluation
        first, *others = judged.verdicts
        said = [
            f"damage ({judged.objective}; 95 % interval over documents): {first} {judged.unit} on "
            f"{first.text}, {first.documents} documents, {first.tokens:,} {first.counted}"
        ]
        said += [
            f"damage on {each.text}: {each}, {each.documents} documents, "
            f"{each.tokens:,} {each.counted}"
            for each in others
        ]
        said += [
            "by kind of text: "
            + ", ".join(f"{kind} {damage_shown(damage)}" for kind, damage in each.kinds.items())
            for each in judged.verdicts
            if each.kinds
        ]
        if first.one_for_all is not None:
            most = damage_shown(first.one_for_all)
            said.append(f"for scale: {most} is what one answer for all inputs would lose")
        said += [f"warning: {warning}" for warning in self.warnings]
        said.append(f"calibrated on {self.calibration}; the verdicts hold for texts like these")
        if self.certificates:
            sound = sum(not certificate.vacuous for certificate in self.certificates)
            rest = "; the others' is vacuous" if sound < len(self.certificates) else ""
            said.append(
                f"certificates: {sound} of {len(self.certificates)} heads have a bound below 1 on "
                f"their attention's change over the calibration inputs{rest}"
            )
        said += self._speed()
        if self.max_loss is None:
            said.append("no quality gate was set (max_loss): judge the numbers yourself")
        else:
            said.append(gate_sentence(first, self.max_loss))
        return said + self._written()

    def _speed(self) -> list[str]:
        times = self.evaluation.latency_ms
        if not times:
            return []
        faster = ", ".join(f"{1 / pair.ratio:.2f}× ({name})" for name, pair in times.items())
        uniform = self.plan.budget is not None and (
            self.plan.budget.get("fast") or self.plan.budget.get("uniform")
        )
        hint = "" if uniform else "; fast gives each layer one head size, which is quicker"
        return [f"speed against the original: {faster}{hint}"]

    def _written(self) -> list[str]:
        if self.folder is None:
            return []
        also = " or, as it is, with transformers" if opens_in_stock(self.plan) else ""
        opens = f"headwise.from_pretrained({str(self.folder)!r})"
        return [f"wrote {self.folder}, {self.bytes_on_disk:,} bytes; open it with {opens}{also}"]

    def to_data(self) -> dict[str, Any]:
        """Everything but the weights, as JSON data."""
        return {
            "model": self.name,
            "calibration": self.calibration,
            "method": self.plan.method,
            "budget": self.plan.budget,
            "predicted_damage": self.plan.predicted_damage,
            "evaluation": self.evaluation.to_data(),
            "warnings": self.warnings,
            "certificates": [asdict(certificate) for certificate in self.certificates],
            "recovery_loss": self.recovery,
            "gate": {"max_loss": self.max_loss, "passed": self.passed, "answer": self.gate},
            "bytes_on_disk": self.bytes_on_disk,
        }
