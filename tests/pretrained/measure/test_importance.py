"""What removing a head costs: estimated from gradients, and measured."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from small_models import Measured, measured, small_material, small_model

from headwise.pretrained import Material, inspect, measure_model
from headwise.pretrained.measure import curves, importance
from headwise.pretrained.measure.importance import all_heads
from headwise.pretrained.text.calibration import few_tokens


def estimated(changes: np.ndarray) -> np.ndarray:
    """What is said of heads whose removal changes the scores of stretches so; two units each."""
    moments = measured("llama").measurement.reductions[0].moments
    seen = torch.from_numpy(np.log1p(changes**2).mean(1))
    return curves.removal_losses(replace(moments, change=seen, stretches=torch.tensor(0.5)))


def test_the_estimate_is_half_the_variance_of_normal_changes_whatever_their_size() -> None:
    sizes = np.geomspace(1e-7, 1e3, 9)
    changes = np.random.default_rng(0).standard_normal((9, 40_000)) * sizes[:, None]
    np.testing.assert_allclose(estimated(changes), 0.5 * sizes**2 / 2, rtol=0.05)


def test_a_few_stretches_whose_gradients_promise_too_much_do_not_decide() -> None:
    changes = np.random.default_rng(0).standard_normal((9, 4000)) * np.geomspace(0.1, 3, 9)[:, None]
    plain = estimated(changes)
    changes[0, :40] = 1e3  # a mean square of 10,000, a million times what it was
    assert plain[0] < estimated(changes)[0] < plain[5]  # whose mean square is 0.7


def test_a_change_of_nothing_costs_nothing() -> None:
    assert not estimated(np.zeros((9, 8))).any()


FAMILIES = ("llama", "bert-masked", "bert", "vit-classifier", "whisper")


def with_small_changes(family: str, shrink: float) -> Measured:
    """All heads nearly at their means: what removing them changes is as gradients say."""
    model, material, measurement = measured(family)
    model = copy.deepcopy(model)
    for site, reduced in zip(measurement.sites, measurement.reductions, strict=True):
        mean = reduced.moments.context_mean.flatten().float()

        def nearer(module, inputs, mean=mean):
            return (mean + shrink * (inputs[0] - mean),)

        model.get_submodule(site.output).register_forward_pre_hook(nearer)
    return Measured(model, material, measurement)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_promise_what_removing_a_head_does_where_that_is_little(family: str) -> None:
    model, material, measurement = with_small_changes(family, 0.05)
    seeds = [replace(measurement, seed=seed) for seed in range(40)]
    promised = np.mean(
        [importance.promised_losses(model, each, material.held_out) for each in seeds], axis=0
    )
    heads = all_heads(measurement)
    true = importance.removal_losses(model, measurement, material.held_out, heads).losses
    assert true.max() > 1e-6
    np.testing.assert_allclose(promised, true, rtol=0.4, atol=1e-7)  # float32 has 1e-7 of an output


def test_an_estimate_is_of_both_texts_and_leaves_the_model_as_it_was() -> None:
    model, material, measurement = measured("llama")
    batches = few_tokens(material.held_out, 4096, 1024)
    model.train()
    promised = importance.promised_losses(model, measurement, batches)
    again = importance.promised_losses(model, measurement, batches)
    assert model.training
    assert all(each.requires_grad for each in model.parameters())
    model.eval()
    np.testing.assert_array_equal(promised, again)
    calibrated = np.concatenate([layer.removal for layer in measurement.curves])
    inspection = inspect(model, text=material, measurement=measurement)  # of too little to try
    np.testing.assert_allclose(inspection.heads["importance"] ** 2, calibrated * promised)


def with_many_words(**options: Any) -> Measured:
    """A language model of few heads with text enough to try them, and 5,000 words."""
    model = small_model("llama", vocab_size=5000, **options)
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(2.0)  # some words are likely, as they are
    generator = torch.Generator().manual_seed(0)
    ids = [torch.randint(5000, (1, 128), generator=generator) for _ in range(12)]
    batches = [{"input_ids": each} for each in ids]
    material = Material(batches[:6], batches[6:], "random tokens")
    return Measured(model, material, measure_model(model, material))


@pytest.mark.parametrize("tied", [False, True])
def test_heads_of_a_small_language_model_are_tried_on_likely_words(tied: bool) -> None:
    model, material, measurement = with_many_words(tie_word_embeddings=tied)
    heads = all_heads(measurement)
    before = model(**material.held_out[0]).logits
    tried = importance.tried_losses(model, measurement, material.held_out, heads)
    true = importance.removal_losses(model, measurement, material.held_out, heads).losses
    np.testing.assert_allclose(tried, true, rtol=0.2)
    assert stats.spearmanr(tried, true).statistic > 0.98
    assert before.shape[-1] == 5000
    assert torch.equal(model(**material.held_out[0]).logits, before)
    calibrated = np.concatenate([layer.removal for layer in measurement.curves])
    inspection = inspect(model, text=material, measurement=measurement)
    np.testing.assert_allclose(inspection.heads["importance"] ** 2, calibrated * tried, rtol=0.2)


def test_a_model_that_adds_to_every_word_is_tried_on_all_of_them() -> None:
    model = small_model("bart", vocab_size=5000)
    material = small_material(model)
    measurement = measure_model(model, material)
    heads = all_heads(measurement)
    tried = importance.tried_losses(model, measurement, material.held_out, heads)
    true = importance.removal_losses(model, measurement, material.held_out, heads).losses
    np.testing.assert_allclose(tried, true, rtol=0.3)  # which leaves out each text's last token


def test_a_model_that_fails_while_its_heads_are_tried_is_left_as_it_was() -> None:
    model, material, measurement = with_many_words()
    before = model(**material.held_out[0]).logits
    layer = model.model.layers[0]

    def fails(module: Any, inputs: Any, output: Any) -> None:
        calls.append(module)
        if len(calls) > 3:
            raise RuntimeError("no more")

    calls: list[Any] = []
    handle = layer.register_forward_hook(fails)
    with pytest.raises(RuntimeError):
        importance.tried_losses(model, measurement, material.held_out, all_heads(measurement))
    handle.remove()
    assert torch.equal(model(**material.held_out[0]).logits, before)


@torch.no_grad()
def test_what_is_measured_and_how_surely_is_what_an_own_loop_finds() -> None:
    model, material, measurement = measured("llama")
    heads = all_heads(measurement)
    own = np.zeros((len(heads), len(material.held_out)))
    tokens = []
    for column, batch in enumerate(material.held_out):
        ids = batch["input_ids"]
        tokens.append(ids[:, 1:].numel())
        before = model(ids).logits[:, :-1].log_softmax(-1)
        for row, (layer, head) in enumerate(heads):
            output = model.model.layers[layer].self_attn.o_proj
            mean = measurement.reductions[layer].moments.context_mean[head].float()

            def replaced(module, inputs, head=head, mean=mean):
                context = inputs[0].unflatten(-1, (-1, len(mean))).clone()
                context[:, :, head] = mean
                return (context.flatten(2),)

            handle = output.register_forward_pre_hook(replaced)
            after = model(ids).logits[:, :-1].log_softmax(-1)
            handle.remove()
            own[row, column] = float((before.exp() * (before - after)).sum())
    found = importance.removal_losses(model, measurement, material.held_out, heads)
    np.testing.assert_allclose(found.losses, own.sum(1) / sum(tokens), rtol=1e-3)
    one_by_one = [
        {name: value[row : row + 1] for name, value in batch.items()}
        for batch in material.held_out
        for row in range(len(batch["input_ids"]))
    ]
    alone = [importance.removal_losses(model, measurement, [one], heads) for one in one_by_one]
    weights = [one["input_ids"].shape[1] - 1 for one in one_by_one]
    sums = np.stack([each.losses * n for each, n in zip(alone, weights, strict=True)])
    between = stats.spearmanr(sums[::2].sum(0), sums[1::2].sum(0)).statistic
    assert found.agreement == pytest.approx(2 * between / (1 + between), abs=0.02)
    assert importance.removal_losses(model, measurement, one_by_one[:1], heads).agreement is None


def test_an_exact_inspection_says_how_surely_it_ranks_the_heads() -> None:
    model, material, measurement = measured("llama")
    estimate = inspect(model, text=material, measurement=measurement)
    assert estimate.agreement is None
    assert not any("other text" in words for words in estimate.findings)
    exact = inspect(model, text=material, measurement=measurement, exact=True)
    assert exact.agreement is not None
    assert any(f"about {exact.agreement:.2f} " in words for words in exact.findings)
    assert exact.to_data()["importance_agreement"] == exact.agreement
