"""A `--uniform` model through ONNX: exported from stock transformers, run with onnxruntime.

    pip install onnx onnxruntime onnxscript
    python benchmarks/pretrained/export.py [MODEL]

MODEL is a folder that `headwise compress MODEL --uniform --out` wrote; without one a small random
Llama is compressed first. The exported graph must give the same logits to 1e-3.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, nargs="?")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or small_uniform(Path(temporary) / "uniform")
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()  # stock
        model.set_attn_implementation("eager")
        ids = torch.randint(0, model.config.vocab_size, (2, 24))
        graph = Path(temporary) / "model.onnx"
        torch.onnx.export(Logits(model), (ids,), graph, input_names=["input_ids"], dynamo=True)
        session = onnxruntime.InferenceSession(str(graph))
        (given,) = session.run(None, {"input_ids": ids.numpy()})
        with torch.no_grad():
            expected = model(input_ids=ids).logits.numpy()
    worst = float(np.abs(given - expected).max())
    heads = model.config.num_attention_heads
    print(f"{folder.name}: {heads} heads; largest difference of logits {worst:.1e}", end="; ")
    print("met" if worst <= _TOLERANCE else "MISSED")
    sys.exit(worst > _TOLERANCE)


if __name__ == "__main__":
    main()
