"""Many models in one program; one seed, one result.

There is one `train`. How data are fed is a matter of the specification, and each has a folder:
`samples` (`Training`), `stream` (`Streaming`), `text` (`TextTraining`) and `choices`
(`ChoiceTraining`).
"""

from headwise.training._train import train
from headwise.training.checkpoint import Checkpoint
from headwise.training.choices.specification import ChoiceTraining
from headwise.training.ensemble import Ensemble
from headwise.training.memory import keep_freed_memory
from headwise.training.outcome import Outcome
from headwise.training.samples.specification import Training
from headwise.training.schedule import learning_rates
from headwise.training.stream.specification import Streaming
from headwise.training.text.specification import TextTraining
from headwise.training.text.weights import trained_weights

__all__ = [
    "Checkpoint",
    "ChoiceTraining",
    "Ensemble",
    "Outcome",
    "Streaming",
    "TextTraining",
    "Training",
    "keep_freed_memory",
    "learning_rates",
    "train",
    "trained_weights",
]
