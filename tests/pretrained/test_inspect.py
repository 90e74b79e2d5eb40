"""Inspection: numbers that can be known otherwise, in the table, the words and the page."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from small_models import small_material, small_model

from headwise.pretrained import inspect
from headwise.pretrained.findings import findings
from headwise.pretrained.inspection import Inspection
from headwise.report.inspection import heat_maps
from headwise.report.result_page import page


def test_a_head_whose_scores_have_rank_one_is_seen_to_need_one_dimension() -> None:
    model = small_model("bert")
    attention = model.encoder.layer[1].attention.self
    with torch.no_grad():
        attention.query.weight[9:16] = 0  # head 1 keeps the first of its eight rows
        attention.query.bias[9:16] = 0
    heads = inspect(model, text=small_material(model)).heads.set_index(["layer", "head"])
    assert heads.loc[(1, 1), "size_at_1pct"] == 1
    assert heads.loc[(1, 1), "rank_by_weights"] == pytest.approx(1.0, abs=1e-6)
    assert heads.loc[(1, 0), "rank_by_weights"] > 2


def test_a_head_that_attends_evenly_has_the_entropy_of_the_uniform_distribution() -> None:
    model = small_model("vit")
    attention = model.layers[0].attention
    with torch.no_grad():
        attention.q_proj.weight[:8] = 0
        attention.q_proj.bias[:8] = 0
    heads = inspect(model, text=small_material(model)).heads.set_index(["layer", "head"])
    assert heads.loc[(0, 0), "entropy"] == pytest.approx(np.log(17), rel=1e-5)
    assert heads.loc[(0, 1), "entropy"] < np.log(17)


def test_two_equal_heads_are_found_to_be_redundant_and_a_dead_one_unimportant() -> None:
    model = small_model("bert")
    attention, output = model.encoder.layer[0].attention.self, model.encoder.layer[0].attention
    with torch.no_grad():
        for name in ("query", "key", "value"):
            module = getattr(attention, name)
            module.weight[8:16] = module.weight[:8]
            module.bias[8:16] = module.bias[:8]
        output.output.dense.weight[:, 8:16] = output.output.dense.weight[:, :8]
        output.output.dense.weight[:, 16:24] = 0
    inspection = inspect(model, text=small_material(model), exact=True)
    heads = inspection.heads.set_index(["layer", "head"])
    assert heads.loc[(0, 0), "most_similar_head"] == 1
    assert heads.loc[(0, 0), "similarity"] == pytest.approx(1.0, abs=1e-4)
    assert heads.loc[(0, 2), "importance"] == 0
    assert heads.loc[(0, 2), "importance_measured"] == pytest.approx(0.0, abs=1e-6)
    assert any("0.0–1" in words for words in inspection.findings)


def test_layers_of_an_encoder_and_a_decoder_are_told_apart() -> None:
    """Their numbers are no depths: nothing is said of later layers."""
    model = small_model("t5")
    inspection = inspect(model, text=small_material(model))
    stacks = inspection.heads.drop_duplicates("layer").set_index("layer")["stack"]
    assert {*stacks} == {"encoder", "decoder", "decoder cross"}
    assert not any("later layers" in words for words in inspection.findings)
    assert "layer 0 encoder" in page(inspection)


def test_a_head_alone_has_no_twin_and_is_compared_with_none() -> None:
    heads = pd.DataFrame(
        [{"layer": 0, "head": 0, "importance": 0.25, "similarity": 0.0, "most_similar_head": 0}]
    ).assign(size_at_1pct=1, size_at_10pct=1)
    errors = pd.DataFrame({"layer": 0, "head": 0, "length": [8, 16], "size": 1, "change": 0.0})
    said = findings(heads, errors, head_dim=4)
    assert "removing the one head raises the loss by 0.25 at most" in "; ".join(said)
    assert not any("nan" in words or "carry half" in words for words in said)
    whole = Inspection("one", heads, errors, pd.DataFrame(), said, "nats", "loss", "text", ["few"])
    shown = page(whole)
    assert "Warning: few." in shown
    assert '"twin": null' in shown


def test_the_page_holds_every_head_and_asks_nothing_of_the_network(tmp_path: Path) -> None:
    model = small_model("llama")
    model.config.name_or_path = "a <small> model"
    path = tmp_path / "page.html"
    inspection = inspect(model, text=small_material(model), report=path)
    page = path.read_text("utf-8")
    assert "The attention heads of a &lt;small&gt; model" in page
    assert not re.search(r"<(script|link|img)[^>]+(src|href)\s*=\s*[\"']?https?:", page)
    assert page.count("<tr>") >= len(inspection.heads)
    json.dumps(inspection.to_data(), allow_nan=False)
    assert len(heat_maps(inspection)) == 7
    assert set(inspection.errors["length"]) == {8, 16}


@torch.no_grad()
def test_importance_is_what_replacing_a_head_by_its_mean_does() -> None:
    """Of heads that do little, for which a second order says all, on the texts it is from."""
    model = small_model("llama")
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.mul_(0.2)
    material = small_material(model)
    said = inspect(model, text=material).heads.set_index(["layer", "head"])["importance"]
    dim = model.config.head_dim
    outputs = [layer.self_attn.o_proj for layer in model.model.layers]
    means = [_mean_input(model, material.calibration, output) for output in outputs]
    true = dict.fromkeys(said.index, 0.0)
    tokens = 0
    for batch in [*material.calibration, *material.held_out]:
        before = model(**batch).logits.log_softmax(-1)
        tokens += before[..., 0].numel()
        for layer, head in true:
            place = slice(head * dim, (head + 1) * dim)

            def replaced(module, inputs, place=place, mean=means[layer]):
                context = inputs[0].clone()
                context[..., place] = mean[place]
                return (context,)

            handle = outputs[layer].register_forward_pre_hook(replaced)
            after = model(**batch).logits.log_softmax(-1)
            handle.remove()
            true[layer, head] += float((before.exp() * (before - after)).sum())
    true = pd.Series(true) / tokens
    assert said.sum() == pytest.approx(true.sum(), rel=0.3)
    assert said.corr(true, method="spearman") > 0.8


def _mean_input(model, batches, output) -> torch.Tensor:
    seen = []
    handle = output.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    for batch in batches:
        model(**batch)
    handle.remove()
    return torch.cat([each.flatten(0, 1) for each in seen]).mean(0)


def test_an_image_is_not_cut_where_its_caption_is() -> None:
    """Its patches are rows, as tokens are; heads are watched at an eighth of the text's length."""
    model = small_model("siglip2")
    assert inspect(model, text=small_material(model)).heads["importance"].notna().all()
