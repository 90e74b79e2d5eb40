"""From a command to its twin: an option has the name of the parameter that it sets."""

from collections.abc import Mapping
from enum import Enum
from typing import Any


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a command, its `locals()` at the start, as keywords for its twin.

    `--json` stays here: it says how the command prints. A choice among words is its word. That
    names and defaults agree is tested for all commands.
    """
    return {
        name: value.value if isinstance(value, Enum) else value
        for name, value in options.items()
        if name != "as_json"
    }
