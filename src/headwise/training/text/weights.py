"""Trained decoders kept on disk, so that many measurements can share one training.

A file is known by the hash of what it is a function of. It is there whole or not at all, and
processes that want the same one wait for whoever trains it.
"""

from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from headwise.core.cache import cache_folder
from headwise.core.device import chosen_device
from headwise.core.errors import InputError
from headwise.core.files import appearing
from headwise.core.progress import OnProgress, quiet
from headwise.core.spec import spec_hash
from headwise.nets import DecoderShape
from headwise.tasks.protocols import TextTask
from headwise.training.checkpoint import Checkpoint
from headwise.training.session import Session
from headwise.training.text.loop import train_on_text
from headwise.training.text.specification import TextTraining


def trained_weights(
    task: TextTask,
    shape: DecoderShape,
    training: TextTraining,
    seed: int,
    on_progress: OnProgress = quiet,
) -> dict[str, Tensor]:
    """The weights that this training gives: from the disk, or trained now and kept there."""
    key = spec_hash((task, shape, training, seed))[:32]
    path = cache_folder() / "weights" / f"{key}.safetensors"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            if not path.exists():
                checkpoint = path.with_suffix(".checkpoint")
                alone = Session([seed], on_progress, chosen_device(), Checkpoint(checkpoint))
                (made,) = train_on_text(task, shape, training, alone)
                with appearing(path) as scratch:
                    whole = {name: part.contiguous() for name, part in made.params.items()}
                    save_file(whole, scratch)
                checkpoint.unlink(missing_ok=True)
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"the trained weights {path} cannot be used ({error}); delete it"
        ) from error
