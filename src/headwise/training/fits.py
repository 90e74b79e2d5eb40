"""Whether a network reads what a task gives."""

from typing import Any

from headwise.core.errors import require


def check_token_dim(task: Any, shape: Any) -> None:
    """Refuse a network whose tokens have another number of coordinates than the task's."""
    require(
        task.token_dim == shape.token_dim,
        f"the task's tokens have {task.token_dim} numbers, the network takes {shape.token_dim}",
    )
