"""Options that typer does not read by itself."""

from headwise.errors import InputError


def whole_numbers(text: str) -> list[int]:
    """'16,32' as [16, 32]."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{text!r} is not a list of whole numbers such as 16,32,64") from None
