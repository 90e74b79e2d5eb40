"""What went wrong, in a sentence a person can act on."""


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
