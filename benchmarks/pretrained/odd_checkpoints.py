"""Checkpoints that nobody tuned for: every family, odd shapes, hostile weights, any precision.

`drawn(seed, number)` says what the number-th of them is; `write(case, folder)` makes it, with a
tokenizer of single characters. The same on every machine.
"""

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "pretrained"))
from small_models import MODELS, small_model

from headwise.pretrained import attention_sites
from odd_shapes import odd_shape

SPECIAL = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = sorted(
    set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,;:!?'\"()-\n")
)
VOCABULARY = len(SPECIAL) + len(LETTERS)
NOT_TEXT = ("clip", "whisper", "ast", "hubert", "siglip", "siglip2", "wav2vec2")
"""They read batches, which only the Python twin takes."""

HEADS = {
    "bert": (
        "BertForSequenceClassification", "BertForTokenClassification", "BertForQuestionAnswering",
    ),
    "llama": ("LlamaForSequenceClassification",),
    "gemma": ("GemmaForSequenceClassification",),
    "starcoder2": ("Starcoder2ForTokenClassification",),
    "glm": ("GlmForSequenceClassification",),
    "bloom": ("BloomForTokenClassification",),
    "falcon": ("FalconForTokenClassification", "FalconForQuestionAnswering"),
    "gpt-neo": ("GPTNeoForSequenceClassification",),
    "esm": ("EsmForTokenClassification",),
    "umt5": ("UMT5EncoderModel",),
    "distilbert": ("DistilBertForMaskedLM",),
    "roberta": ("RobertaForMaskedLM", "RobertaForSequenceClassification"),
    "electra": ("ElectraForMaskedLM",),
    "modernbert": ("ModernBertForMaskedLM",),
    "mpnet": ("MPNetForMaskedLM",),
}  # fmt: skip
BROKEN = ("nan", "infinite")
WEIGHTS = (
    "plain", "plain", "trained", "trained", "trained", "sharp", "faint", "loud values", "dead head",
    "dead layer", "twin heads", "sink", "thin", "one direction", "flat outputs", "sure outputs",
    "outlier channel", "heavy tails", "one loud head", *BROKEN,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What a checkpoint is."""

    number: int
    family: str
    head: str | None
    changes: tuple[tuple[str, Any], ...]
    weights: str
    dtype: str
    shards: bool

    def __str__(self) -> str:
        named = ", ".join(f"{name} {value}" for name, value in self.changes)
        parts = [self.head or self.family, named, self.weights, self.dtype]
        return "; ".join([*filter(None, parts), *(["shards"] if self.shards else [])])


def drawn(seed: int, number: int) -> Case:
    """The number-th case; families come in turn, all else by chance."""
    rng = random.Random(f"{seed}-{number}")
    texts = sorted(family for family in MODELS if family not in NOT_TEXT)
    family = texts[number % len(texts)]
    heads = HEADS.get(family, ())
    return Case(
        number=number,
        family=family,
        head=rng.choice((None, *heads)),
        changes=tuple(sorted(odd_shape(MODELS[family][2], family, rng).items())),
        weights=rng.choice(WEIGHTS),
        dtype=rng.choice(("float32", "float32", "float32", "bfloat16", "float16")),
        shards=rng.random() < 0.15,
    )


def tokenizer(closed: bool) -> Any:
    """Single characters; `closed` ones put [CLS] and [SEP] around a text, as encoders know it."""
    vocabulary = {name: number for number, name in enumerate([*SPECIAL, *LETTERS])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    if closed:
        core.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "mask_token": "[MASK]"}
    names |= {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, **names)


def write(case: Case, folder: Path, text: str) -> None:
    """The checkpoint; some of them are trained on the text for a moment."""
    torch.manual_seed(case.number)
    changes = dict(case.changes)
    if not _images(case.family):
        changes["vocab_size"] = VOCABULARY
    model = _model(case, changes)
    hostile(model, case.weights, text)
    model = model.to(getattr(torch, case.dtype))
    model.save_pretrained(folder, max_shard_size="30KB" if case.shards else "1GB")
    if not _images(case.family):
        tokenizer(closed=not type(model).__name__.endswith(("CausalLM", "LMHeadModel"))
                  ).save_pretrained(folder)  # fmt: skip


def _images(family: str) -> bool:
    return "image_size" in MODELS[family][2]


def _model(case: Case, changes: dict[str, Any]) -> Any:
    model = small_model(case.family, **changes)
    if case.head is None:
        return model
    labels = {"num_labels": 1 + case.number % 3, "pad_token_id": 1}
    config = getattr(transformers, MODELS[case.family][0])(
        **MODELS[case.family][2] | labels | changes
    )
    other = getattr(transformers, case.head)(config).eval()
    with torch.no_grad():
        for parameter in other.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=1.5 / parameter.shape[-1] ** 0.5)
    return other


@torch.no_grad()
def hostile(model: Any, kind: str, text: str) -> None:
    """Make the weights what `kind` says, in place."""
    sites = attention_sites(model)
    middle = sites[len(sites) // 2]
    scores = {"sharp": 12.0, "faint": 1e-3}
    if kind == "trained":
        _train(model, text)
    elif kind in scores:
        for site in sites:
            _rows(model, site, "query").mul_(scores[kind])
    elif kind == "loud values":
        _rows(model, middle, "value").mul_(100.0)
    elif kind == "dead head":
        for site in sites:
            _rows(model, site, "value")[: site.head_dim] = 0
    elif kind == "dead layer":
        _rows(model, middle, "value").zero_()
    elif kind == "twin heads" and middle.kv_heads > 1:
        for site in sites:
            for role in ("query", "key", "value"):
                rows, size = _rows(model, site, role), site.head_dim
                for start in range(size, len(rows), size):
                    rows[start : start + size] = rows[:size]
    elif kind == "sink":
        _sink(model)
    elif kind in ("thin", "one direction"):
        rank = 1 if kind == "one direction" else 2
        for site in sites:
            for role in ("query", "key", "value"):
                _lower_rank(_rows(model, site, role), rank)
    elif kind in ("flat outputs", "sure outputs"):
        _scale_outputs(model, 1e-4 if kind == "flat outputs" else 30.0)
    elif kind == "outlier channel":
        for name, parameter in model.named_parameters():
            if "embed" in name.lower() and parameter.ndim == 2:
                parameter[:, 0] += 60.0
    elif kind == "heavy tails":
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.div_(torch.rand_like(parameter).clamp(min=0.01).sqrt())
    elif kind == "one loud head":
        _rows(model, middle, "query")[: middle.head_dim] *= 30
        _rows(model, middle, "value")[: middle.head_dim] *= 30
    elif kind in BROKEN:
        _rows(model, middle, "key")[0, 0] = float("nan" if kind == "nan" else "inf")


def _rows(model: Any, site: Any, role: str) -> Any:
    """The weights of a role, a row an output, as a view of the model's own."""
    projection = getattr(site, role)
    module = model.get_submodule(projection.path)
    transposed = type(module).__name__ == "Conv1D"
    weight = module.weight.T if transposed else module.weight
    whole = projection.columns(torch.arange(len(weight))[None])[0]
    if len(whole) == len(weight):
        return weight
    return weight[int(whole[0]) : int(whole[-1]) + 1]  # a part of a fused matrix


def _lower_rank(rows: torch.Tensor, rank: int) -> None:
    u, s, vh = torch.linalg.svd(rows, full_matrices=False)
    rows.copy_(u[:, :rank] * s[:rank] @ vh[:rank])


def _sink(model: Any) -> None:
    """All tokens but one are alike, and that one, by its size, draws every head's attention."""
    table = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    if isinstance(table, torch.nn.Embedding):
        table.weight.mul_(0.3).add_(1.0)
        table.weight[SPECIAL.index("[CLS]")].mul_(-8.0)
        table.weight[len(SPECIAL) + LETTERS.index("T")].mul_(-8.0)


def _scale_outputs(model: Any, factor: float) -> None:
    outputs = getattr(model, "get_output_embeddings", lambda: None)()
    names = ("classifier", "score", "qa_outputs")
    head = outputs or next((getattr(model, n) for n in names if hasattr(model, n)), None)
    if head is None:
        return
    for parameter in head.parameters():
        parameter.mul_(factor)


@torch.enable_grad()
def _train(model: Any, text: str, steps: int = 150) -> None:
    """Real structure: next (or masked) characters, where the model predicts any."""
    if getattr(model, "get_output_embeddings", lambda: None)() is None or getattr(
        model.config, "is_encoder_decoder", False
    ):
        return
    codes = {letter: number + len(SPECIAL) for number, letter in enumerate(LETTERS)}
    ids = torch.tensor([codes.get(letter, 0) for letter in text])
    masked = "MaskedLM" in type(model).__name__
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(steps):
        starts = torch.randint(len(ids) - 48, (12,))
        batch = torch.stack([ids[start : start + 48] for start in starts])
        inputs, labels = batch, batch
        if masked:
            chosen = torch.rand(batch.shape) < 0.15
            labels = torch.where(chosen, batch, -100)
            inputs = batch.masked_fill(chosen, SPECIAL.index("[MASK]"))
        optimiser.zero_grad()
        model(input_ids=inputs, labels=labels).loss.backward()
        optimiser.step()
    model.eval()
