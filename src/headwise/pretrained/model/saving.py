"""Save a compressed model as a folder that is complete or not there."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwise.core.errors import require
from headwise.core.files import write_file
from headwise.core.spec import to_data
from headwise.pretrained.plan.plan_file import CompressionPlan, write_plan
from headwise.pretrained.plan.shapes import LayerLayout

PLAN_FILE = "headwise_plan.json"
REPORT_FILE = "headwise_report.json"


def record_layouts(model: Any, layouts: list[LayerLayout]) -> None:
    """Write the shape into the configuration, from where `save_pretrained` stores it."""
    model.config.headwise = to_data(layouts)


def save_compressed(
    model: Any,
    folder: Path,
    *,
    plan: CompressionPlan,
    report: dict[str, Any],
    tokenizer: Any = None,
) -> None:
    """Write the checkpoint, its plan and its report: all of it, or nothing."""
    with whole_folder(folder) as staging:
        model.save_pretrained(staging)
        if tokenizer is not None:
            tokenizer.save_pretrained(staging)
        write_plan(plan, staging / PLAN_FILE)
        report = report | {"bytes_on_disk": checkpoint_bytes(staging)}
        write_file(staging / REPORT_FILE, json.dumps(report, indent=1) + "\n")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder that appears, complete, when the block ends without an error."""
    check_new_folder(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        yield staging
        staging.chmod(0o755)
        os.replace(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def check_new_folder(folder: Path | None) -> None:
    """Refuse a folder that is there already. None is nowhere, and fine."""
    require(folder is None or not folder.exists(), f"{folder} exists; choose a new folder")


def checkpoint_bytes(folder: Path) -> int:
    """What a folder's weights take on disk."""
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))
