"""The kinds of runs there are: a file a kind. `register` adds a user's own."""

import headwise.tasks  # noqa: F401  (a stored run can be read only where its task is known)
from headwise.lab.kinds import (  # noqa: F401  (they register themselves)
    built,
    choices,
    class_token,
    cut_layer,
    ngram,
    pooled,
    text,
    token_decoder,
    tokens,
    watched_attention,
)
from headwise.lab.kinds._one_by_one import Reading, one_by_one
from headwise.lab.kinds._registry import (
    Column,
    Kind,
    Quantity,
    find_kind,
    homes,
    is_kind,
    kind_of,
    register,
)

__all__ = [
    "Column",
    "Kind",
    "Quantity",
    "Reading",
    "find_kind",
    "homes",
    "is_kind",
    "kind_of",
    "one_by_one",
    "register",
]
