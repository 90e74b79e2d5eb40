"""What measuring and inspecting cost, beside a forward and backward pass over the same tokens.

    python benchmarks/pretrained/measuring.py MODEL [--text FILE] [--tokens N] [--heads N]

prints CPU seconds and ratios. `--heads N` also removes N heads drawn at random, one at a time, each
replaced by its mean, and prints the rank correlation of that with `inspect`'s importance.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import stats

from headwise.pretrained import inspect, load_model, load_tokenizer, measure_model, text_material
from headwise.pretrained.measure.importance import (
    all_heads,
    estimated_losses,
    removal_losses,
)
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.text.calibration import few_tokens, token_count


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


def plain_pass(model: Any, batches: list[dict[str, torch.Tensor]]) -> None:
    """What training would do, without the optimiser."""
    for batch in batches:
        model(**batch, labels=batch["input_ids"]).loss.backward()
    model.zero_grad(set_to_none=True)


def predicts(
    model: Any, measurement: Measurement, held_out: list[Any], count: int
) -> tuple[float, float | None]:
    """Rank correlation of importance with the true damage of replacing a head by its mean, and of
    that damage with the one on as much other text."""
    heads = all_heads(measurement)
    rng = np.random.default_rng(0)
    some = [heads[index] for index in rng.permutation(len(heads))[:count]]
    true = removal_losses(model, measurement, few_tokens(held_out, 4096, 1024), some)
    said = dict(zip(heads, estimated_losses(model, measurement, held_out), strict=True))
    ranked = stats.spearmanr([said[head] for head in some], true.losses)
    return float(ranked.statistic), true.agreement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--text")
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--heads", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, tokenizer = load_model(options.model), load_tokenizer(options.model)
    material = text_material(model, tokenizer, options.text, tokens=options.tokens)
    plain, _ = cpu_seconds(lambda: plain_pass(model, material.calibration))
    spent, measurement = cpu_seconds(lambda: measure_model(model, material, cache=False))
    looked, _ = cpu_seconds(lambda: inspect(model, text=material, measurement=measurement))
    print(f"{token_count(material.calibration):,} tokens, CPU seconds, one thread")
    print(f"plain forward and backward  {plain:8.1f}")
    print(f"measuring                   {spent:8.1f}  {spent / plain:.2f} × plain")
    print(
        f"inspecting                  {spent + looked:8.1f}  {1 + looked / spent:.2f} × measuring"
    )
    if options.heads:
        rank, sure = predicts(model, measurement, material.held_out, options.heads)
        print(f"importance against the truth, {options.heads} heads: rank correlation {rank:.3f}")
        print(f"the truth against that on as much other text: {sure or float('nan'):.3f}")


if __name__ == "__main__":
    main()
