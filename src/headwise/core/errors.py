"""What went wrong, in a sentence a person can act on."""

from numbers import Integral


class InputError(ValueError):
    """The caller's input cannot be used.

    The message says what was wrong and what is accepted. The command line prints it and exits
    with code 2; a traceback would only hide it.
    """


class WorkLost(RuntimeError):
    """Work ended through no fault of the input: a worker process died, memory ran out.

    The message says what is kept and how to go on. The command line exits with code 5.
    """


def require(condition: bool, sentence: str) -> None:
    """Raise `InputError(sentence)` unless `condition` holds."""
    if not condition:
        raise InputError(sentence)


def check_whole(value: object, name: str, least: int, most: int | None = None) -> None:
    """Refuse what is no whole number from `least` to `most`; True is none, numpy's integers are."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    wanted = f"at least {least}" if most is None else f"from {least} to {most}"
    require(whole, f"{name} is {value!r}; it is a whole number, {wanted}")
    assert isinstance(value, Integral)
    fits = least <= int(value) and (most is None or int(value) <= most)
    require(fits, f"{name} is {value}; it is a whole number, {wanted}")
