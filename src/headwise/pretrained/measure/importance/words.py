"""A language model that predicts among the words that it holds likely, which costs it less."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headwise.pretrained.measure.comparing import Inputs

_WORDS = 2048


@contextmanager
def likely_words(model: Any, inputs: Inputs) -> Iterator[None]:
    """The words with the most probability over these inputs are all that it predicts.

    Nothing changes where the output is no plain matrix or has few words anyway, or where the model
    then says anything else of those words, as one that adds a number to every word's logit.
    """
    words = model.get_output_embeddings()
    if type(words) is not nn.Linear or words.out_features < 2 * _WORDS or "forward" in vars(words):
        yield
        return
    logits = model(**inputs).logits
    likely = logits.flatten(0, -2).softmax(-1).sum(0).topk(_WORDS).indices
    weight = words.weight[likely]
    bias = None if words.bias is None else words.bias[likely]
    whole = vars(words)
    whole["forward"] = lambda states: nn.functional.linear(states, weight, bias)
    try:
        if not _says(model, inputs, logits[..., likely]):
            del whole["forward"]
        yield
    finally:
        whole.pop("forward", None)


def _says(model: Any, inputs: Inputs, logits: Tensor) -> bool:
    try:
        return torch.allclose(model(**inputs).logits, logits, rtol=1e-3, atol=1e-3)
    except RuntimeError:  # of tensors that do not fit
        return False
