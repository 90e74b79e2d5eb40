"""Models as people have them: training, adapted, half dead, one half of a pair, with rare heads."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from small_models import (
    FAMILIES,
    common_words,
    far_from_zero,
    measured,
    small_material,
    small_model,
)
from tokenizers import processors
from torch import nn

import headwise
from headwise.core.errors import InputError
from headwise.pretrained import Material, attention_sites, text_material
from headwise.pretrained.text.calibration import packaged_text, token_count


def of_class(family: str, name: str, **changes: Any) -> Any:
    """A small random model of this family with another head."""
    config, _, options = FAMILIES[family]
    torch.manual_seed(2)
    model = getattr(transformers, name)(getattr(transformers, config)(**options | changes)).eval()
    return far_from_zero(model)


def halved(model: Any, material: Material | None = None) -> Any:
    material = material or small_material(model)
    return headwise.compress(model, text=material, keep=0.5, time_it=False, cache=False)


@torch.no_grad()
def own_divergence(model: Any, smaller: Any, material: Material, shift: int) -> float:
    """KL a prediction by an own loop; language models' last position has no token to predict."""
    rows = []
    for batch in material.held_out:
        p, q = (each(**batch).logits.double().log_softmax(-1) for each in (model, smaller))
        kl = (p.exp() * (p - q)).sum(-1)
        rows.append((kl[:, :-1] if shift else kl).flatten())
    return float(torch.cat(rows).mean())


def test_a_model_in_training_is_judged_without_its_dropout() -> None:
    model = small_model("llama", attention_dropout=0.5)
    model.train()
    model.model.layers[0].eval()  # as frozen parts are
    modes = [module.training for module in model.modules()]
    material = small_material(model)
    result = halved(model, material)
    assert modes == [module.training for module in model.modules()]
    model.eval()
    mine = own_divergence(model, result.model.eval(), material, shift=1)
    assert result.evaluation.damage == pytest.approx(mine, rel=1e-3)


class Adapted(nn.Module):
    """As LoRA's: another module around the original's weights, which are not all that it adds."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base, self.extra = base, nn.Linear(base.in_features, base.out_features, bias=False)

    @property
    def weight(self) -> torch.Tensor:
        return self.base.weight

    @property
    def bias(self) -> torch.Tensor | None:
        return self.base.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        added: torch.Tensor = self.base(x) + self.extra(x)
        return added


@pytest.mark.parametrize("role", ["q_proj", "k_proj", "v_proj", "o_proj"])
def test_what_is_not_a_plain_linear_map_is_refused(role: str) -> None:
    model = small_model("llama")
    attention = model.model.layers[1].self_attn
    setattr(attention, role, Adapted(getattr(attention, role)))
    with pytest.raises(InputError, match=r"is a Adapted.*merge adapters"):
        halved(model)


@pytest.mark.parametrize("role", ["q_proj", "k_proj", "v_proj", "o_proj"])
def test_a_projection_that_does_more_than_its_weights_say_is_refused(role: str) -> None:
    model = small_model("llama")
    material = small_material(model)
    headwise.compress(model, text=material, keep=0.5, time_it=False)  # measured, and kept on disk
    module = getattr(model.model.layers[1].self_attn, role)
    module.register_forward_hook(lambda module, inputs, output: 1.2 * output)
    with pytest.raises(InputError, match=rf"layers\.1\.self_attn\.{role} puts out something else"):
        headwise.compress(model, text=material, keep=0.5, time_it=False)


@pytest.mark.parametrize("family", ["bert", "llama", "qwen3"])
def test_a_layer_that_does_nothing_is_no_obstacle(family: str) -> None:
    model = small_model(family)
    site = attention_sites(model)[1]
    with torch.no_grad():
        for parameter in model.get_submodule(site.value.path).parameters():
            parameter.zero_()
    result = halved(model)
    assert 0.4 < result.evaluation.attention_parameters.ratio <= 0.5
    assert 0 <= result.evaluation.damage < 5


@pytest.mark.parametrize(
    ("family", "name"), [("bart", "BartForCausalLM"), ("whisper", "WhisperForCausalLM")]
)
def test_a_decoder_taken_from_its_pair(family: str, name: str) -> None:
    model = of_class(family, name)
    assert not any(site.cross for site in attention_sites(model))
    pairs = small_material(small_model(family))
    data = [
        [{"input_ids": batch["decoder_input_ids"]} for batch in part]
        for part in (pairs.calibration, pairs.held_out)
    ]
    material = Material(data[0], data[1], "random tokens")
    result = halved(model, material)
    mine = own_divergence(model, result.model, material, shift=1)
    assert result.evaluation.damage == pytest.approx(mine, rel=1e-3)


def closing_tokenizer() -> Any:
    """Of common words, an end of text after each input."""
    tokenizer = common_words()
    tokenizer.add_special_tokens({"eos_token": "[EOS]"})
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A [EOS]:0", special_tokens=[("[EOS]", tokenizer.eos_token_id)]
    )
    return tokenizer


@pytest.mark.parametrize(
    ("family", "name"),
    [("bart", "BartForSequenceClassification"), ("t5", "T5ForSequenceClassification")],
)
def test_encoder_decoders_that_classify_read_whole_texts(family: str, name: str) -> None:
    tokenizer = closing_tokenizer()
    model = of_class(family, name, num_labels=3, eos_token_id=tokenizer.eos_token_id)
    material = text_material(model, tokenizer, tokens=800, length=32)
    whole = [batch["input_ids"] for batch in material.held_out]
    assert all(batch.keys() == {"input_ids"} for batch in material.held_out)
    assert max(ids.shape[1] for ids in whole) == 32
    result = halved(model, material)
    mine = own_divergence(model, result.model, material, shift=0)
    assert result.evaluation.damage == pytest.approx(mine, rel=1e-3, abs=3e-8)


def test_what_a_model_cannot_read_is_said_in_its_own_words() -> None:
    model = of_class("t5", "T5ForSequenceClassification", num_labels=3, eos_token_id=97)
    batches = [{"input_ids": torch.randint(4, 96, (4, 16))} for _ in range(4)]
    with pytest.raises(InputError, match=r"T5ForSequenceClassification does not run.*<eos>"):
        halved(model, Material(batches[:3], batches[3:], "without an end"))


def test_heads_that_cannot_be_judged_are_refused() -> None:
    model = of_class("gpt2", "GPT2DoubleHeadsModel")
    with pytest.raises(InputError, match="GPT2DoubleHeadsModel has a head"):
        halved(model, small_material(model))


def test_predictions_of_masked_tokens_alone_are_judged_like_all() -> None:
    damages = []
    for sparse in (False, True):
        model = of_class("modernbert", "ModernBertForMaskedLM", sparse_prediction=sparse)
        material = small_material(model)
        for batch in [*material.calibration, *material.held_out]:
            batch["labels"] = torch.where(batch["input_ids"] % 5 == 0, batch["input_ids"], -100)
        damages.append(halved(model, material).evaluation.damage)
    assert damages[0] == pytest.approx(damages[1], rel=1e-4)


def test_a_distilled_image_classifier_is_judged_by_its_labels() -> None:
    model = of_class("deit", "DeiTForImageClassificationWithTeacher")
    material = small_material(model)
    result = halved(model, material)
    mine = own_divergence(model, result.model, material, shift=0)
    assert result.evaluation.damage == pytest.approx(mine, rel=1e-3)


@pytest.mark.parametrize(
    "name", ["t5", "gpt2", "gpt-neox", "modernbert", "bart", "llama", "phi3", "distilbert", "bert"]
)
def test_plain_transformers_refuses_what_it_would_fill_with_random_numbers(
    name: str, tmp_path: Path
) -> None:
    model = small_model(name)
    folder = halved(model).save(tmp_path / "half")
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        type(model).from_pretrained(folder)
    headwise.from_pretrained(folder).save_pretrained(tmp_path / "again")
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        type(model).from_pretrained(tmp_path / "again")


@pytest.mark.parametrize("limit", [0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("family", ["qwen3", "llama"])
def test_the_smallest_model_within_a_loss_is_within_it(family: str, limit: float) -> None:
    model, material, measurement = measured(family)
    result = headwise.compress(
        model, text=material, measurement=measurement, max_loss=limit, time_it=False
    )
    assert result.passed
    assert result.evaluation.attention_parameters.ratio < 1


def test_heads_that_are_all_the_same_are_cut() -> None:
    """Of their contexts some directions are nothing at all, which regressions have to bear."""
    model = small_model("llama")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "self_attn" in name:
                parameter.fill_(0.1)
    assert halved(model).evaluation.damage < 1e-6


def test_the_smallest_model_within_a_loss_may_keep_next_to_nothing() -> None:
    """No share was asked for, so that none is missed."""
    model = small_model("llama")
    material = small_material(model)
    result = headwise.compress(model, text=material, max_loss=1e3, time_it=False, cache=False)
    assert result.passed


def test_both_texts_of_a_pair_are_counted(text: Path) -> None:
    material = text_material(small_model("t5"), common_words(), text, tokens=1000, length=32)
    assert not any("where 1,000 were asked for" in warning for warning in material.warnings)
    read = sum(ids.numel() for batch in material.calibration for ids in batch.values())
    assert token_count(material.calibration) == read


def test_damage_is_never_below_zero() -> None:
    """A cosine of vectors of rounded length may be above one."""
    model = small_model("bert")
    whole = headwise.compress(model, text=small_material(model), keep=1.0, time_it=False)
    for verdict in whole.evaluation.verdicts:
        assert verdict.damage >= 0.0
        assert verdict.low is not None
        assert verdict.low >= 0.0


def test_an_encoder_reads_all_of_a_text_that_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "line.txt"
    path.write_text(packaged_text("held_out")[:9000].replace("\n", " "), "utf-8")
    material = text_material(small_model("bert"), common_words(), path, tokens=900, length=32)
    assert token_count(material.calibration) > 600
