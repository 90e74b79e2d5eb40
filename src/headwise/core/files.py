"""A specification in a file of its own: ordinary JSON, written whole or not at all."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from headwise.core.errors import InputError
from headwise.core.spec import from_data, to_data


def read_spec(path: Path, what: str) -> Any:
    """The specification in a file; `what` names in a sentence what was expected."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    try:
        return from_data(data)
    except InputError as error:
        raise InputError(f"{path} is not {what}: {error}") from error


def write_spec(value: Any, path: Path) -> None:
    """Write atomically: the whole specification or nothing."""
    try:
        handle, temporary = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(to_data(value), file, indent=1, ensure_ascii=False)
            file.write("\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
