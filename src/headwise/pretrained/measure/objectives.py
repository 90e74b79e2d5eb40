"""Which objective a model has, by its class and configuration."""

from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.core.errors import InputError, require
from headwise.pretrained.measure.comparing import Compared, Inputs, Objective, Pull
from headwise.pretrained.measure.labels import MultiLabel, Prediction, Regression, Spans
from headwise.pretrained.measure.language import MaskedToken, NextToken

Pool = Literal["mean", "cls", "last"]
POOLS = ("mean", "cls", "last")
_LANGUAGE_MODELS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel")


class Embedding(Objective):
    """Encoders. Damage: 1 − cosine of pooled embeddings, which is ½‖Δ‖² for unit vectors.

    A model with two towers (CLIP) has an embedding of each, as it makes them itself; so has one
    tower with its projection.
    """

    name = "1 − cosine of embeddings"
    unit = "an embedding"

    def __init__(self, pool: str = "mean") -> None:
        require(pool in POOLS, f"pool is {pool!r}; known are {', '.join(POOLS)}")
        self.pool = pool

    def options(self) -> dict[str, Any]:
        """How the embedding is read."""
        return {"pool": self.pool}

    def pull(self, outputs: Any, inputs: Inputs, rng: np.random.Generator) -> Pull:
        """Random directions of the embedding."""
        vectors = self.embed(outputs)
        directions = torch.from_numpy(rng.standard_normal(vectors.shape, np.float32))
        return Pull(vectors, directions.to(vectors), vectors.shape[0])

    def compare(self, original: Any, changed: Any, inputs: Inputs) -> Compared:
        """1 − cosine, by sequence."""
        cosine = (self.embed(original) * self.embed(changed)).sum(-1).clamp(max=1.0)
        if _two_towers(original):
            text, image = cosine.chunk(2)
            return Compared(2 - text - image, torch.full_like(text, 2.0))
        return Compared(1 - cosine, torch.ones_like(cosine))

    def answers(self, outputs: Any, inputs: Inputs) -> Tensor:
        """The unit vectors."""
        return self.embed(outputs)

    def content(self, answers: Tensor) -> Tensor:
        """The norm: the mean cosine with the unit vectors' mean is the mean's norm."""
        return answers.norm(dim=-1)

    def embed(self, outputs: Any) -> Float[Tensor, "batch hidden"]:
        """The unit vector of the last hidden states' mean, first or last; of towers, both."""
        made = [outputs[name] for name in ("text_embeds", "image_embeds") if name in outputs]
        if made:
            vector = torch.cat(made).float()
        else:
            states = outputs.last_hidden_state.float()
            last = 0 if self.pool == "cls" else -1
            vector = states.mean(1) if self.pool == "mean" else states[:, last]
        return nn.functional.normalize(vector, dim=-1)


def _two_towers(outputs: Any) -> bool:
    return "text_embeds" in outputs and "image_embeds" in outputs


def objective_for(model: Any, pool: str | None = None) -> Objective:
    """By the model's class: a language model's, another head's, or the embedding's."""
    name = type(model).__name__
    embeds = name.endswith("Model") and not name.endswith((*_LANGUAGE_MODELS, "HeadsModel"))
    require(pool is None or embeds, f"pool is for embeddings; {name} does not give them")
    if embeds or name.endswith("WithProjection"):
        return Embedding(pool or "mean")
    if name.endswith(_LANGUAGE_MODELS):
        return NextToken()
    if name.endswith("ForMaskedLM"):
        return MaskedToken()
    if name.endswith("ForQuestionAnswering"):
        return Spans()
    if name.endswith("ForCTC"):  # a letter, or none, for every stretch of sound
        return Prediction()
    labels = ("Classification", "ClassificationWithTeacher", "NextSentencePrediction")
    if name.endswith(labels):
        return _labelling(model.config)
    raise InputError(
        f"{name} has a head whose quality headwise cannot judge; what it judges: language models "
        "(causal and masked), classifiers of sequences, tokens, images and sound, transcribers "
        "(CTC), question answering, and models without a head (embeddings)"
    )


def _labelling(config: Any) -> Objective:
    kind = getattr(config, "problem_type", None)
    if kind == "regression" or (kind is None and int(config.num_labels) == 1):
        return Regression()
    return MultiLabel() if kind == "multi_label_classification" else Prediction()
