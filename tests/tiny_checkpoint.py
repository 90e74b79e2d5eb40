"""A BERT-like checkpoint of a few words, and questions about them, for tests."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

WORDS = [f"w{number}" for number in range(40)]
DIM = 16


def write_checkpoint(folder: Path) -> Path:
    """Tables at random, and a tokenizer of whole words."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    sizes = {"word_embeddings": len(vocabulary), "position_embeddings": 64}
    tables = {f"embeddings.{k}.weight": torch.randn(n, DIM) for k, n in sizes.items()}
    tables["embeddings.token_type_embeddings.weight"] = torch.randn(2, DIM)
    tables["embeddings.LayerNorm.weight"] = 1 + 0.1 * torch.randn(DIM)
    tables["embeddings.LayerNorm.bias"] = 0.1 * torch.randn(DIM)
    save_file(tables, folder / "model.safetensors")
    return folder


def write_questions(path: Path, count: int = 30) -> Path:
    """A query shares a word with its answer, and another with the next query's."""
    rows = [
        {
            "query": f"{WORDS[n % 40]} {WORDS[(n + 1) % 40]} q{n}",
            "positives": [f"{WORDS[n % 40]} p{n} {WORDS[(3 * n) % 40]} {WORDS[(n + 7) % 40]}"],
        }
        for n in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path
