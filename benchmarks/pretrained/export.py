"""A `--uniform` model in other programs: exported from stock transformers, run there.

    pip install onnx onnxruntime onnxscript gguf xllamacpp
    python benchmarks/pretrained/export.py [MODEL] [--to onnx | gguf]

MODEL is a folder that `headwise compress MODEL --uniform --out` wrote; without one a small random
Llama is compressed first. The exported graph must give the same logits to 1e-3 in onnxruntime, the
GGUF file the same log-probabilities of the likeliest next tokens in llama.cpp.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import headwise
from headwise.pretrained import Material

_TOLERANCE = 1e-3


class Logits(torch.nn.Module):
    """Token ids in, logits out: the plain signature that an exporter wants."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=input_ids, use_cache=False).logits
        return logits


def small_uniform(folder: Path) -> Path:
    """A random Llama, compressed to half of its heads."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4,
        intermediate_size=128, vocab_size=200, max_position_embeddings=128,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    batches = [{"input_ids": torch.randint(0, 200, (4, 32))} for _ in range(10)]
    material = Material(batches[:8], batches[8:], "random tokens")
    return headwise.compress(model, text=material, keep=0.5, uniform=True, time_it=False).save(
        folder
    )


def onnx_difference(model: Any, ids: torch.Tensor, graph: Path) -> float:
    """The largest of logits, onnxruntime's against transformers'."""
    import onnxruntime

    exported = Logits(model).eval()
    torch.onnx.export(exported, (ids,), graph, input_names=["input_ids"], dynamo=True)
    session = onnxruntime.InferenceSession(str(graph))
    (given,) = session.run(None, {"input_ids": ids.numpy()})
    with torch.no_grad():
        expected = model(input_ids=ids).logits.numpy()
    return float(np.abs(given - expected).max())


def gguf_difference(model: Any, ids: torch.Tensor, file: Path) -> float:
    """The largest of log-probabilities, llama.cpp's against transformers'."""
    from gguf_file import largest_difference, write_gguf

    write_gguf(model, file)
    return max(largest_difference(model, file, row) for row in ids.tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--to", choices=("onnx", "gguf"), default="onnx")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or small_uniform(Path(temporary) / "uniform")
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()  # stock
        model.set_attn_implementation("eager")
        ids = torch.randint(3, model.config.vocab_size, (2, 24))
        difference = onnx_difference if options.to == "onnx" else gguf_difference
        worst = difference(model, ids, Path(temporary) / f"model.{options.to}")
    heads = model.config.num_attention_heads
    print(f"{folder.name}: {heads} heads; largest difference {worst:.1e} ({options.to})", end="; ")
    print("met" if worst <= _TOLERANCE else "MISSED")
    sys.exit(worst > _TOLERANCE)


if __name__ == "__main__":
    main()
