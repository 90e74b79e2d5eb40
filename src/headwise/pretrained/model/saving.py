"""Save a compressed model as a folder that is complete or not there, and opens as what it was."""

import copy
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headwise.core.errors import InputError, require
from headwise.core.files import appearing_folder, is_file, read_bytes, write_file
from headwise.core.spec import to_data
from headwise.pretrained.model.opening import class_named, without_weights
from headwise.pretrained.plan.plan_file import CompressionPlan, write_plan
from headwise.pretrained.plan.shapes import LayerLayout

PLAN_FILE = "headwise_plan.json"
REPORT_FILE = "headwise_report.json"
PREPARATION = "preprocessor_config.json"  # how images or sound become a model's inputs


def record_layouts(model: Any, layouts: list[LayerLayout]) -> None:
    """Write the shape into the configuration, from where `save_pretrained` stores it."""
    model.config.headwise = to_data(layouts)


def check_reopens(model: Any) -> None:
    """Refuse a model that, once saved, would open as another, or not at all.

    A checkpoint is tensors and a configuration. Who opens it makes the class that this names and
    looks for the tensors of that: what else was added to a model is lost, and what was taken or
    given another shape is missed. A pooler may be missing, as in a model made without one.
    """
    own, config = type(model), copy.deepcopy(model.config)
    config.architectures = [own.__name__]
    opened = class_named(config)
    require(
        opened is own,
        f"{own.__name__} is not a class of transformers: saved, it would open as "
        f"{opened.__name__}, without what it adds to that. Compress the {opened.__name__} in it, "
        "or merge what was added",
    )
    found, told = (_shapes(each) for each in (model, without_weights(config)))
    wrong = [
        name
        for name in sorted(found | told)
        if found.get(name) != told.get(name) and (name in found or "pooler" not in name)
    ]
    require(
        not wrong,
        f"the model's {', '.join(wrong[:2])} {'are' if len(wrong) > 1 else 'is'} not what its "
        "configuration tells of, so that, saved, it could not be opened: merge adapters, make "
        "pruning permanent (torch.nn.utils.prune.remove), or tell the configuration of the change",
    )
    with TemporaryDirectory() as folder:
        _saved(getattr(model, "generation_config", None), Path(folder))


def _shapes(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def _saved(part: Any, folder: Path) -> None:
    """Save a model or its configuration; transformers refuses some, such as options of sampling
    for one that does not sample."""
    try:
        if part is not None:
            part.save_pretrained(folder)
    except (ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"the model cannot be saved as transformers does it: {said}") from error


def save_compressed(
    model: Any,
    folder: Path,
    *,
    plan: CompressionPlan,
    report: dict[str, Any],
    tokenizer: Any = None,
) -> None:
    """Write the checkpoint, its plan and its report: all of it, or nothing."""
    check_reopens(model)
    with appearing_folder(folder) as staging:
        _saved(model, staging)
        if tokenizer is not None:
            tokenizer.save_pretrained(staging)
        known = Path(getattr(model.config, "name_or_path", "")) / PREPARATION
        if is_file(known):
            write_file(staging / PREPARATION, read_bytes(known))
        write_plan(plan, staging / PLAN_FILE)
        report = report | {"bytes_on_disk": checkpoint_bytes(staging)}
        write_file(staging / REPORT_FILE, json.dumps(report, indent=1) + "\n")


def checkpoint_bytes(folder: Path) -> int:
    """What a folder's weights take on disk."""
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))
