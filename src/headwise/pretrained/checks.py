"""Answers that must not be given: broken weights before the work, and failed results after it."""

from inspect import signature
from typing import Any

import torch

from headwise.core.errors import InputError, require
from headwise.pretrained._evaluate import Evaluation, document_count
from headwise.pretrained.text.calibration import Sample

_FACTOR = 2.0  # how far above the damage an interval may reach before that is said
_SEEN = 1e-6  # less damage is rounding


def check_model(model: Any) -> None:
    """Refuse a model whose configuration contradicts it, or with a weight that is no number."""
    paired = getattr(model.config, "is_encoder_decoder", False)
    writes = hasattr(model, "can_generate") and model.can_generate()
    require(
        not (paired and writes) or "decoder_input_ids" in signature(model.forward).parameters,
        f"config.json says is_encoder_decoder = {paired!r}, and {type(model).__name__} has no "
        "encoder: it could not write a word",
    )
    require(
        getattr(model.config, "return_dict", True),
        "the model's configuration says return_dict = False, and headwise reads outputs by name: "
        "set it to True",
    )
    require(
        not any(map(torch.is_autocast_enabled, ("cpu", "cuda"))),
        "under torch.autocast() everything would be measured as rounded: call this outside",
    )
    opened_there = any(parameter.is_inference() for parameter in model.parameters())
    require(
        not (opened_there or torch.is_inference_mode_enabled()),
        "under torch.inference_mode(), and of a model that was opened there, no gradient can be "
        "measured: open it, and call this, outside",
    )
    for name, parameter in model.named_parameters():
        require(
            bool(torch.isfinite(parameter.detach().sum())) or bool(parameter.isfinite().all()),
            f"the model's weight {name} has numbers that are not finite: the checkpoint is broken",
        )


def check_gate(sample: Sample, max_loss: float | None) -> None:
    """Refuse, before anything is measured, a gate that nothing could pass."""
    require(
        max_loss is None or document_count(sample) > 1,
        f"max_loss asks for damage with an interval over documents, and {sample.source} is one "
        "document: give more text, or eval_text, or leave max_loss out",
    )


def ruins(evaluation: Evaluation) -> list[str]:
    """A warning for each text on which little is left of the model."""
    return [
        f"the compressed model is ruined on {verdict.text}: its damage is {verdict.damage:.4g}, "
        f"and one answer for all inputs, whatever they are, would lose {verdict.one_for_all:.4g}"
        for verdict in evaluation.verdicts
        if verdict.ruined
    ]


def tells_nothing(evaluation: Evaluation) -> list[str]:
    """A warning for each text to which the original gives one answer: then so may anything."""
    return [
        f"the original itself gives one answer to all of {verdict.text}: damage there says nothing "
        "about inputs that it tells apart"
        for verdict in evaluation.verdicts
        if verdict.one_for_all is not None and verdict.one_for_all <= _SEEN
    ]


def uncertain(evaluation: Evaluation) -> list[str]:
    """A warning where too few documents carry the damage for it to be known."""
    verdict = evaluation.verdicts[0]
    if verdict.high is None or verdict.high <= _FACTOR * verdict.damage or verdict.damage < _SEEN:
        return []
    return [
        f"a few of {verdict.documents} documents make most of the damage on {verdict.text}, so it "
        f"is not known: {verdict.damage:.4g}, and up to {verdict.high:.4g} in its 95 % interval; "
        "give more text (tokens)"
    ]


def check_finite(evaluation: Evaluation) -> None:
    """Refuse a compressed model whose outputs are not numbers."""
    for verdict in evaluation.verdicts:
        if not torch.isfinite(torch.tensor(verdict.damage)):
            raise InputError(
                f"the compressed model's outputs on {verdict.text} are not finite numbers; "
                "nothing is written. Keep more, or give more calibration text"
            )
