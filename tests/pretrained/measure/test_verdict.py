"""The verdict equals an own evaluation loop, whatever the model puts out."""

import types
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from small_models import common_words, far_from_zero, small_material, small_model, word_tokenizer

import headwise
from headwise.core.errors import InputError
from headwise.core.intervals import Interval
from headwise.pretrained import Material, text_material
from headwise.pretrained.measure.comparing import divergences
from headwise.pretrained.measure.labels import MultiLabel
from headwise.pretrained.text.calibration import BOUNDARY, packaged_text, token_count

Inputs = dict[str, torch.Tensor]


def headed(config: str, model: str, **options: Any) -> Any:
    """A small random model with this head, all its weights far from zero."""
    shape = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    shape |= {"intermediate_size": 48, "max_position_embeddings": 64}
    torch.manual_seed(3)
    made = getattr(transformers, model)(getattr(transformers, config)(**shape | options)).eval()
    return far_from_zero(made)


def divergence(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """KL by torch's own function, an independent path."""
    kl = torch.nn.functional.kl_div(
        q.double().log_softmax(-1), p.double().log_softmax(-1), log_target=True, reduction="none"
    )
    return kl.sum(-1)


def own_next_token(original: Any, changed: Any, batch: Inputs) -> torch.Tensor:
    return divergence(original.logits[:, :-1], changed.logits[:, :-1]).flatten()


def own_labels(original: Any, changed: Any, batch: Inputs) -> torch.Tensor:
    return divergence(original.logits, changed.logits).flatten()


def own_several(original: Any, changed: Any, batch: Inputs) -> torch.Tensor:
    p, q = (torch.distributions.Bernoulli(logits=o.logits.double()) for o in (original, changed))
    return torch.distributions.kl_divergence(p, q).sum(-1).flatten()


def own_spans(original: Any, changed: Any, batch: Inputs) -> torch.Tensor:
    return torch.cat(
        [
            divergence(getattr(original, name), getattr(changed, name))
            for name in ("start_logits", "end_logits")
        ]
    )


HEADS = {
    "causal": ("LlamaConfig", "LlamaForCausalLM", {}, own_next_token),
    "labels": ("BertConfig", "BertForSequenceClassification", {"num_labels": 3}, own_labels),
    "tokens": ("BertConfig", "BertForTokenClassification", {"num_labels": 5}, own_labels),
    "several": (
        "BertConfig",
        "BertForSequenceClassification",
        {"num_labels": 4, "problem_type": "multi_label_classification"},
        own_several,
    ),
    "spans": ("RobertaConfig", "RobertaForQuestionAnswering", {}, own_spans),
    "decoder labels": (
        "LlamaConfig",
        "LlamaForSequenceClassification",
        {"num_labels": 3, "pad_token_id": 0},
        own_labels,
    ),
}


@pytest.mark.parametrize("head", sorted(HEADS))
def test_the_reported_damage_is_that_of_an_own_loop(head: str) -> None:
    config, name, options, own = HEADS[head]
    model = headed(config, name, **options)
    material = small_material(model)
    result = headwise.compress(model, text=material, keep=0.6, time_it=False)
    found = []
    with torch.no_grad():
        for batch in material.held_out:
            found.append(own(model(**batch), result.model(**batch), batch))
    mine = float(torch.cat(found).mean())
    assert result.evaluation.damage == pytest.approx(mine, rel=1e-3)
    assert mine > 1e-5
    kept = result.evaluation.attention_parameters.ratio
    assert 0.48 < kept <= 0.6


def test_rounding_is_not_an_improvement() -> None:
    """A shift of all logits changes no distribution, and rounds to both sides of zero."""
    logits = 10 * torch.randn(500, 90, generator=torch.Generator().manual_seed(0))
    found = divergences(logits, logits + 3.3)
    assert float(found.max()) < 1e-5
    assert float(found.min()) >= 0


def test_rounding_of_several_labels_is_not_an_improvement() -> None:
    logits = torch.randn(1, 400, 3, generator=torch.Generator().manual_seed(0)) * 3
    outputs = [types.SimpleNamespace(logits=each) for each in (logits, logits * (1 + 1e-6))]
    compared = MultiLabel().compare(*outputs, {})
    each = [
        MultiLabel()
        .compare(*(types.SimpleNamespace(logits=one.logits[0, [row]]) for one in outputs), {})
        .damage
        for row in range(400)
    ]
    assert float(torch.cat(each).min()) >= 0
    assert float(compared.damage) >= 0


def test_one_label_is_a_number_judged_in_units_of_its_spread() -> None:
    model = headed("BertConfig", "BertForSequenceClassification", num_labels=1)
    material = small_material(model)
    result = headwise.compress(model, text=material, keep=0.75, time_it=False)
    assert 0.6 < result.evaluation.attention_parameters.ratio <= 0.75
    with torch.no_grad():
        spread = torch.cat([model(**batch).logits for batch in material.calibration]).std()
        change = torch.cat(
            [model(**batch).logits - result.model(**batch).logits for batch in material.held_out]
        )
    assert result.evaluation.damage == pytest.approx(
        float((change / spread).square().mean()), rel=1e-3
    )
    with torch.no_grad():
        model.classifier.weight.zero_()
    with pytest.raises(InputError, match="the same score for every calibration text"):
        headwise.compress(model, text=material, keep=0.75)


def test_masked_language_models_are_judged_on_masked_tokens() -> None:
    model, tokenizer = headed("BertConfig", "BertForMaskedLM"), common_words()
    with pytest.raises(InputError, match="no mask token"):
        text_material(model, word_tokenizer(), tokens=500)
    material = text_material(model, tokenizer, tokens=2000)
    batch = max(material.held_out, key=lambda batch: batch["input_ids"].numel())
    chosen = batch["labels"] != -100
    assert 0.1 < float(chosen.float().mean()) < 0.2
    is_mask = batch["input_ids"] == tokenizer.mask_token_id
    assert 0.7 < float(is_mask[chosen].float().mean()) < 0.9
    assert not is_mask[~chosen].any()
    result = headwise.compress(model, text=material, keep=0.6, time_it=False)
    found, losses = [], []
    with torch.no_grad():
        for each in material.held_out:
            there = each["labels"] != -100
            before, after = (m(each["input_ids"]).logits[there] for m in (model, result.model))
            found.append(divergence(before, after))
            losses.append(
                torch.nn.functional.cross_entropy(after, each["labels"][there], reduction="none")
            )
    verdict = result.evaluation.verdicts[0]
    assert verdict.damage == pytest.approx(float(torch.cat(found).mean()), rel=1e-3)
    assert verdict.loss is not None
    assert verdict.loss.compressed == pytest.approx(float(torch.cat(losses).mean()), rel=1e-4)


def test_a_model_that_predicts_few_tokens_is_judged_on_more_text() -> None:
    masked, plain = (
        text_material(headed("BertConfig", name), common_words(), tokens=2000)
        for name in ("BertForMaskedLM", "BertModel")
    )
    assert token_count(masked.held_out) > 3 * token_count(plain.held_out)
    assert token_count(masked.calibration) == token_count(plain.calibration)


def test_the_interval_is_over_documents_and_two_texts_are_judged() -> None:
    model = small_model("llama")
    material = text_material(model, common_words(), tokens=1500)
    result = headwise.compress(model, text=material, keep=0.6, time_it=False)
    first, second = result.evaluation.verdicts
    assert "other sources" in first.text
    assert "another kind" in second.text
    assert first.documents == len({name for row in material.documents for name in row})
    by_document: dict[int, list[float]] = {}
    with torch.no_grad():
        for batch, names in zip(material.held_out, material.documents, strict=True):
            rows = divergence(
                model(**batch).logits[:, :-1], result.model(**batch).logits[:, :-1]
            ).sum(1)
            for name, row in zip(names, rows.tolist(), strict=True):
                by_document.setdefault(name, []).append(row / (batch["input_ids"].shape[1] - 1))
    if all(len(values) == 1 for values in by_document.values()):  # equal sizes: a plain interval
        plain = Interval.of_skewed(value for values in by_document.values() for value in values)
        assert (first.low, first.high) == pytest.approx((plain.low, plain.high), rel=1e-2)
    assert first.low is not None
    assert first.high is not None
    assert first.low < first.damage < first.high
    shown = str(result)
    assert first.text in shown
    assert second.text in shown


def test_fewer_tokens_than_asked_for_is_said(checkpoint: Path, text: Path) -> None:
    result = headwise.compress(checkpoint, text=text, keep=0.7, tokens=50_000, time_it=False)
    assert any("where 50,000 were asked for" in warning for warning in result.warnings)
    assert "warning: " in str(result)


def test_few_long_documents_do_not_leave_the_verdict_to_themselves(tmp_path: Path) -> None:
    """Six of 60 held-out documents fill a window: all of those are judged, and shorter ones too."""
    words = ["once", "upon", "a", "time", "there", "was", "a", "little", "girl", "named", "lily"]
    lengths = [90 if number % 50 == 4 else 30 for number in range(300)]
    stories = [" ".join(words[i % len(words)] for i in range(length)) for length in lengths]
    path = tmp_path / "stories.txt"
    path.write_text("<|endoftext|>".join(stories))
    material = text_material(small_model("llama"), word_tokenizer(), path, tokens=2000)
    sizes = [batch["input_ids"].shape for batch in material.held_out]
    assert sum(rows for rows, length in sizes if length == 64) == 6
    assert 0.9 * 1000 <= sum(rows * length for rows, length in sizes) <= 1.1 * 1000


def test_short_texts_are_judged_whole(tmp_path: Path) -> None:
    """They were cut to a multiple of sixteen tokens, of which a title or a query has few."""
    words = packaged_text("held_out").replace(BOUNDARY, "").split()
    texts = [" ".join(words[start : start + 9 + start % 23]) for start in range(0, 8000, 40)]
    path = tmp_path / "texts.txt"
    path.write_text(BOUNDARY.join(texts))
    tokenizer = common_words()
    material = text_material(small_model("bert"), tokenizer, path, tokens=10_000, cache=False)
    whole = [tuple(ids) for ids in tokenizer(texts[4::5])["input_ids"]]
    judged = [tuple(row.tolist()) for batch in material.held_out for row in batch["input_ids"]]
    assert sorted(judged) == sorted(whole)
    assert {batch["input_ids"].shape[1] for batch in material.calibration} == {16}


def test_lengths_are_the_models_or_the_users(text: Path) -> None:
    model, tokenizer = small_model("llama"), word_tokenizer()

    def longest(**options: Any) -> int:
        material = text_material(model, tokenizer, text, tokens=2000, **options)
        batches = [*material.calibration, *material.held_out]
        return max(batch["input_ids"].shape[1] for batch in batches)

    assert longest() == 64
    assert longest(length=32) == 32
    with pytest.raises(InputError, match="at most 64 tokens"):
        longest(length=65)
    encoder = small_model("roberta")  # two positions are padding's, and no token's
    other = text_material(encoder, tokenizer, text, tokens=2000).other
    assert other is not None
    longest_batch = max(other.batches, key=lambda batch: batch["input_ids"].shape[1])
    assert longest_batch["input_ids"].shape[1] == 62
    with torch.no_grad():
        encoder(**longest_batch)


def test_pooling_is_read_from_the_checkpoint_or_said(tmp_path: Path) -> None:
    model = small_model("bert")
    folder = tmp_path / "encoder"
    model.save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    recorded = folder / "1_Pooling" / "config.json"
    recorded.write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    material = small_material(model)

    def damage(subject: Any, **options: Any) -> float:
        result = headwise.compress(
            subject, text=material, keep=0.6, time_it=False, tokenizer=word_tokenizer(), **options
        )
        with torch.no_grad():
            pooled = [
                torch.cat([m(**batch).last_hidden_state[:, 0] for batch in material.held_out])
                for m in (model, result.model)
            ]
        by_first = float((1 - torch.cosine_similarity(*pooled)).mean())
        assert (result.evaluation.damage == pytest.approx(by_first, rel=1e-2)) == (
            options.get("pool") != "mean"
        )
        return result.evaluation.damage

    assert damage(folder) != damage(folder, pool="mean")
    assert damage(model, pool="cls") == pytest.approx(damage(folder))
    recorded.write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(InputError, match="pooling_mode_max_tokens"):
        damage(folder)
    with pytest.raises(InputError, match="does not give them"):
        headwise.compress(small_model("llama"), text=material, keep=0.5, pool="cls")


def test_padding_and_foreign_token_numbers_are_refused() -> None:
    model = small_model("llama")
    ids = torch.randint(0, 99, (2, 16))
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    padded = Material([{"input_ids": ids, "attention_mask": mask}], [{"input_ids": ids}], "mine")
    with pytest.raises(InputError, match="has padding"):
        headwise.compress(model, text=padded, keep=0.5)
    foreign = Material([{"input_ids": ids}], [{"input_ids": ids + 40}], "mine")
    with pytest.raises(InputError, match="vocabulary 99 tokens"):
        headwise.inspect(model, text=foreign)
