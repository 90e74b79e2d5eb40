"""What is opened is all that a checkpoint holds, and what is written opens as what it was."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from small_models import common_words, far_from_zero, small_material, small_model
from torch import nn

import headwise
from headwise.core.errors import InputError


def class_said(folder: Path, names: list[str] | None) -> None:
    """Write another class into the configuration."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"architectures": names}))


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (None, r"no use for \(lm_head.weight\).* names no class"),
        (["LlamaForReward"], "LlamaForReward, which transformers does not know"),
        (["BertTokenizer"], "BertTokenizer, which is no model"),
        (["pipeline"], "pipeline, which is no model"),
    ],
)
def test_a_head_is_not_lost_because_its_class_is_unknown(
    names: list[str] | None, sentence: str, checkpoint: Path
) -> None:
    class_said(checkpoint, names)
    with pytest.raises(InputError, match=sentence):
        headwise.compress(checkpoint, keep=0.5)


def test_a_body_without_a_head_needs_no_class_named(tmp_path: Path) -> None:
    small_model("bert").save_pretrained(tmp_path)
    class_said(tmp_path, None)
    assert type(headwise.from_pretrained(tmp_path)) is transformers.BertModel


class CountingForCausalLM(transformers.LlamaForCausalLM):
    """A class of a user's own."""


class Adapted(nn.Linear):
    """What an adapter leaves in a model: a linear map with another beside it."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__(base.in_features, base.out_features, bias=False)
        self.weight = base.weight
        self.beside = nn.Linear(base.in_features, base.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        added: torch.Tensor = super().forward(x) + self.beside(x)
        return added


def _own_class() -> Any:
    return far_from_zero(CountingForCausalLM(small_model("llama").config).eval())


def _adapted() -> Any:
    model = small_model("llama")
    model.model.layers[0].mlp.up_proj = Adapted(model.model.layers[0].mlp.up_proj)
    return model


def _pruned() -> Any:
    from torch.nn.utils import prune

    model = small_model("llama")
    prune.l1_unstructured(model.model.layers[0].mlp.up_proj, "weight", amount=0.3)
    return model


def _another_head() -> Any:
    model = small_model("llama")
    model.lm_head = nn.Linear(model.config.hidden_size, 120, bias=False)
    return model


def _another_temperature() -> Any:
    model = small_model("llama")
    model.generation_config.temperature = 0.3  # of a model that does not sample
    return model


UNSAVED = {
    "class": (_own_class, "CountingForCausalLM is not a class of transformers"),
    "adapted": (_adapted, r"up_proj\.beside\.weight is not what its configuration tells of"),
    "pruned": (_pruned, r"up_proj\.weight, .*up_proj\.weight_mask|make pruning permanent"),
    "head": (_another_head, r"lm_head\.weight is not what"),
    "generation": (_another_temperature, "cannot be saved.*temperature"),
}


@pytest.mark.parametrize("what", UNSAVED)
def test_what_would_not_open_again_is_refused_before_it_is_measured(
    what: str, tmp_path: Path
) -> None:
    make, sentence = UNSAVED[what]
    model, done = make(), list[str]()
    options = {"text": small_material(model), "keep": 0.6, "time_it": False, "cache": False}
    with pytest.raises(InputError, match=sentence):
        headwise.compress(
            model, out=tmp_path / "small", on_progress=lambda *each: done.append("some"), **options
        )
    assert done == []
    result = headwise.compress(model, **options)  # in memory there is nothing wrong with it
    with pytest.raises(InputError, match=sentence):
        result.save(tmp_path / "small")
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "cache"])


def test_a_model_made_without_a_pooler_is_saved(tmp_path: Path) -> None:
    model = small_model("bert")
    bare = far_from_zero(transformers.BertModel(model.config, add_pooling_layer=False).eval())
    result = headwise.compress(bare, text=small_material(bare), keep=0.6, time_it=False)
    assert headwise.from_pretrained(result.save(tmp_path / "small")).pooler is not None


def test_a_uniform_model_ends_its_texts_where_the_original_does(tmp_path: Path) -> None:
    model = small_model("llama")
    model.generation_config.eos_token_id = [3, 7]
    result = headwise.compress(
        model, text=small_material(model), keep=0.6, uniform=True, time_it=False
    )
    result.save(tmp_path / "small")
    stock = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "small")
    assert stock.generation_config.eos_token_id == [3, 7]


def test_a_compiled_model_is_the_model_in_it(text: Path) -> None:
    model = small_model("llama")
    compiled = torch.compile(model, backend="eager")
    options: dict[str, Any] = {"text": text, "tokenizer": common_words(), "keep": 0.6}
    options |= {"tokens": 1000, "time_it": False, "cache": False}
    one, two = (headwise.compress(each, **options) for each in (model, compiled))
    assert type(two.model) is transformers.LlamaForCausalLM
    assert one.evaluation.damage == pytest.approx(two.evaluation.damage, rel=1e-6)


def test_a_checkpoint_in_a_folder_of_another_is_opened_whole(tmp_path: Path) -> None:
    model = small_model("llama")
    result = headwise.compress(model, text=small_material(model), keep=0.6, time_it=False)
    result.save(tmp_path / "all" / "small")
    again = headwise.from_pretrained(tmp_path / "all", subfolder="small")
    state = result.model.state_dict()
    assert all(torch.equal(tensor, state[name]) for name, tensor in again.state_dict().items())
    with pytest.raises(InputError, match="does not take use_safetensors"):
        headwise.from_pretrained(tmp_path / "all" / "small", use_safetensors=False)


def test_a_class_that_finds_its_class_is_followed(checkpoint: Path) -> None:
    class_said(checkpoint, ["AutoModelForCausalLM"])
    assert type(headwise.from_pretrained(checkpoint)) is transformers.LlamaForCausalLM
