"""A model that lost what it told inputs apart by is called ruined, on a scale of its own."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from small_models import measured

from headwise.pretrained import compress
from headwise.pretrained._evaluate import TextVerdict
from headwise.pretrained.measure.comparing import OneForAll
from headwise.pretrained.measure.labels import MultiLabel, Regression
from headwise.pretrained.measure.objectives import Embedding


def constant_damage(model: Any, batches: list[Any]) -> float:
    """Of predicting, everywhere, what the model predicts on average: by an own loop."""
    with torch.no_grad():
        p = torch.cat(
            [model(**b).logits[:, :-1].flatten(0, 1).double().softmax(-1) for b in batches]
        )
    return float((p * (p.log() - p.mean(0).log())).sum(-1).mean())


def test_the_scale_is_the_damage_of_one_prediction_for_all() -> None:
    model, material, measurement = measured("llama")
    result = compress(model, text=material, measurement=measurement, keep=0.9, time_it=False)
    verdict = result.evaluation.verdicts[0]
    mine = constant_damage(model, material.held_out)
    assert verdict.one_for_all == pytest.approx(mine, rel=1e-3)
    assert "one answer for all inputs" in str(result)


def test_what_is_ruined_is_not_written_without_a_word() -> None:
    model, material, measurement = measured("llama")
    options = {"measurement": measurement, "time_it": False, "text": material}
    sound = compress(model, keep=0.95, **options)
    assert not any("ruined" in warning for warning in sound.warnings)
    ruined = compress(model, keep=0.3, method="random", **options)
    judged = ruined.evaluation.verdicts[0]
    assert judged.one_for_all is not None
    assert judged.damage > judged.one_for_all / 2  # removing heads of random weights is that bad
    assert any("ruined on" in warning for warning in ruined.warnings)
    assert "warning: the compressed model is ruined" in str(ruined)


def test_where_all_answers_are_one_none_can_be_lost() -> None:
    """Such as for copies of one image: a millionth of a change is not the model's ruin."""
    verdict = TextVerdict("copies", 1e-4, None, None, 1, 9, None, one_for_all=0.0)
    assert not verdict.ruined
    assert replace(verdict, one_for_all=1e-4).ruined


class _Outputs(dict[str, Any]):
    """As transformers' outputs: by name and by attribute."""

    __getattr__ = dict.__getitem__


def one_for_all(objective: Any, outputs: _Outputs) -> float:
    seen = OneForAll(objective)
    seen.see(outputs, {})
    assert seen.damage is not None
    return seen.damage


def test_other_answers_have_their_scales() -> None:
    draw = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
    scores = one_for_all(Regression(draw.std(0)), _Outputs(logits=draw))
    assert scores == pytest.approx(1.0, rel=0.02)  # the variance, in units of itself
    p = torch.distributions.Bernoulli(logits=draw.double())
    mean = torch.distributions.Bernoulli(probs=p.probs.mean(0).expand_as(p.probs))
    labels = torch.distributions.kl_divergence(p, mean).sum(-1).mean()
    assert one_for_all(MultiLabel(), _Outputs(logits=draw)) == pytest.approx(
        float(labels), rel=1e-3
    )
    unit = torch.nn.functional.normalize(draw, dim=-1)
    middle = torch.nn.functional.normalize(unit.mean(0), dim=-1)
    states = _Outputs(last_hidden_state=draw[:, None])
    apart = float((1 - unit @ middle).mean())
    assert one_for_all(Embedding(), states) == pytest.approx(apart, rel=1e-3)
