"""What a model is for, and so what "loses quality" means: three objectives, one interface.

`pull(outputs, rng)` gives a tensor and a random gradient g to send back from it, so drawn that
E[g gᵀ] = F with ½ δᵀFδ ≈ the damage of a small change δ, summed over `units`. For predictions F is
the Fisher information, by sampling labels from the model itself; for embeddings it is the identity,
by random directions.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn


class Pull(NamedTuple):
    """Send `gradient` back from `tensor`; the damage it stands for is summed over `units`."""

    tensor: Tensor
    gradient: Tensor
    units: int


class NextToken:
    """Decoders. Damage: rise of the loss, nats a token."""

    name = "next-token loss"
    unit = "nats/token"

    def pull(self, outputs: Any, rng: np.random.Generator) -> Pull:
        """Labels drawn from the model's own predictions."""
        return _sampled_labels(outputs.logits, rng)

    def damage(self, original: Any, changed: Any, inputs: dict[str, Tensor]) -> tuple[float, int]:
        """Rise of the loss in nats, summed, and over how many tokens."""
        count = inputs["input_ids"][:, 1:].numel()
        return self.loss(changed, inputs) - self.loss(original, inputs), count

    def loss(self, outputs: Any, inputs: dict[str, Tensor]) -> float:
        """Nats, summed over the tokens that have one before them."""
        targets = inputs["input_ids"][:, 1:].flatten()
        logits = outputs.logits[:, :-1].flatten(0, 1).float()
        return float(nn.functional.cross_entropy(logits, targets, reduction="sum"))


class Prediction:
    """Classifiers and masked language models. Damage: KL divergence from the original's output."""

    name = "divergence of predictions"
    unit = "nats/prediction"

    def pull(self, outputs: Any, rng: np.random.Generator) -> Pull:
        """Labels drawn from the model's own predictions."""
        return _sampled_labels(outputs.logits, rng)

    def damage(self, original: Any, changed: Any, inputs: dict[str, Tensor]) -> tuple[float, int]:
        """Divergence in nats, summed, and over how many predictions."""
        p = original.logits.flatten(0, -2).float().log_softmax(-1)
        q = changed.logits.flatten(0, -2).float().log_softmax(-1)
        return float((p.exp() * (p - q)).sum()), p.shape[0]


class Embedding:
    """Encoders. Damage: 1 − cosine of mean-pooled embeddings, which is ½‖Δ‖² for unit vectors."""

    name = "1 − cosine of embeddings"
    unit = "a sequence"

    def pull(self, outputs: Any, rng: np.random.Generator) -> Pull:
        """Random directions of the embedding."""
        vectors = embed(outputs)
        directions = torch.from_numpy(rng.standard_normal(vectors.shape, np.float32))
        return Pull(vectors, directions.to(vectors), vectors.shape[0])

    def damage(self, original: Any, changed: Any, inputs: dict[str, Tensor]) -> tuple[float, int]:
        """1 − cosine, summed, and over how many sequences."""
        cosine = (embed(original) * embed(changed)).sum(-1)
        return float((1 - cosine).sum()), cosine.shape[0]


Objective = NextToken | Prediction | Embedding


def objective_for(model: nn.Module) -> Objective:
    """By the model's class: a language-model head, another head, or none."""
    name = type(model).__name__
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return NextToken()
    return Embedding() if name.endswith("Model") else Prediction()


def embed(outputs: Any) -> Float[Tensor, "batch hidden"]:
    """Unit mean of the last hidden states: how sentence encoders are read."""
    return nn.functional.normalize(outputs.last_hidden_state.float().mean(1), dim=-1)


@torch.no_grad()
def _sampled_labels(logits: Float[Tensor, "*batch classes"], rng: np.random.Generator) -> Pull:
    """The gradient p − onehot(y) of −log p(y), y drawn from p by inverting its distribution."""
    probability = logits.detach().flatten(0, -2).float().softmax(-1)
    count = probability.shape[0]
    uniform = torch.from_numpy(rng.random((count, 1), np.float32)).to(probability.device)
    labels = torch.searchsorted(probability.cumsum(-1), uniform)
    labels.clamp_(max=probability.shape[-1] - 1)
    gradient = probability.scatter_add_(1, labels, torch.full_like(uniform, -1.0))
    return Pull(logits, gradient.view_as(logits).to(logits.dtype), count)
