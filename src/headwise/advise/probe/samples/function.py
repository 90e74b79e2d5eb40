"""A function to be probed: any callable on batches of sequences, with a way to draw inputs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.advise.probe.samples.arrays import plain_array
from headwise.core.errors import InputError, require

CHUNK_FLOATS = 1 << 22  # largest block of inputs given to the function at once
_SMALLEST, _LARGEST = 1e-100, 1e100  # squares of smaller or larger numbers leave double precision
_REPEATS = 4  # calls on the same inputs that measure the noise


class TargetFunction:
    """`function` maps (count, length, token_dim) to (count,) or (count, outputs).

    `sampler(count, seed)` returns such inputs, or a pair that begins with them, as numpy arrays
    or torch tensors; the function is given what the sampler returns, in double precision. The
    seed is a tuple of whole numbers.
    """

    def __init__(self, function: Callable[..., Any], sampler: Callable[..., Any]) -> None:
        require(callable(function), "the target is a function of a batch of sequences")
        require(callable(sampler), "the sampler is a function of a count and a seed")
        self._function, self._sampler = function, sampler
        self._torch = False
        self.answers_in_double = True
        self.labels = False  # the last answers were booleans or whole numbers
        self._exponent: int | None = None

    def draw(self, count: int, seed: Sequence[int]) -> Float[np.ndarray, "count length dim"]:
        """Inputs in double precision."""
        try:
            drawn = self._sampler(count, tuple(seed))
        except Exception as error:
            raise _failed("sampler", f"({count}, {tuple(seed)})", error) from error
        pair = isinstance(drawn, tuple) or (isinstance(drawn, list) and len(drawn) != count)
        drawn = drawn[0] if pair and len(drawn) else drawn
        self._torch = isinstance(drawn, Tensor)
        values = plain_array(drawn, "the sampler's sequences")
        require(values.dtype.kind in "fiub", f"the sampler returned values of type {values.dtype}")
        inputs = np.array(values, np.float64)
        require(
            inputs.ndim == 3 and len(inputs) == count and min(inputs.shape) >= 1,
            f"the sampler was asked for {count} sequences and returned an array of shape "
            f"{inputs.shape}; expected ({count}, length, token_dim)",
        )
        require(bool(np.isfinite(inputs).all()), "the sampler returned NaN or infinite values")
        size = float(np.abs(inputs).max())
        require(
            size == 0 or _SMALLEST < size < _LARGEST,
            f"the sampler's largest value is {size:.0e}; steps between tokens can be taken from "
            f"{_SMALLEST:.0e} to {_LARGEST:.0e}: choose another unit",
        )
        return inputs

    def __call__(
        self, inputs: Float[np.ndarray, "count length dim"]
    ) -> Float[np.ndarray, "count outputs"]:
        """The function's values, called on blocks of bounded size."""
        rows = max(1, CHUNK_FLOATS // (inputs.shape[1] * inputs.shape[2]))
        blocks = [self._call(inputs[i : i + rows]) for i in range(0, len(inputs), rows)]
        return np.concatenate(blocks)

    def _call(self, inputs: np.ndarray) -> np.ndarray:
        own = inputs.copy()  # the function may change what it is given
        given: Any = torch.from_numpy(own) if self._torch else own
        try:
            with torch.no_grad():
                answer = self._function(given)
        except Exception as error:
            raise _failed("target", f"a batch of shape {inputs.shape}", error) from error
        answer = np.asarray(_numpy(answer))
        require(
            answer.dtype.kind in "fiub" and answer.ndim in (1, 2) and len(answer) == len(inputs),
            f"the target returned an array of shape {answer.shape} and type {answer.dtype} for "
            f"{len(inputs)} sequences; expected one number, or one row of numbers, a sequence",
        )
        self.answers_in_double = answer.dtype == np.float64
        self.labels = answer.ndim == 1 and answer.dtype.kind in "iub"
        values = answer.astype(np.float64).reshape(len(inputs), -1)
        require(bool(np.isfinite(values).all()), "the target returned NaN or infinite values")
        size = float(np.abs(values).max())
        if self._exponent is None and size > 0:  # the first answers set the unit
            self._exponent = 0 if _SMALLEST < size < _LARGEST else int(np.frexp(size)[1])
        return np.ldexp(values, -(self._exponent or 0))

    def as_given(self, values: np.ndarray) -> np.ndarray:
        """Answers in the form in which a user would give them as data: labels as whole numbers."""
        if self.labels:
            return values[:, 0].astype(np.int64)
        return values[:, 0] if values.shape[1] == 1 else values

    def deviation(self, inputs: np.ndarray) -> Float[np.ndarray, " outputs"]:
        """Standard deviation of every output over the inputs; 1 for an output that is constant."""
        spread = self(inputs).std(0)
        return np.where(spread > 0, spread, 1.0)

    def noise(self, inputs: np.ndarray) -> float:
        """Standard deviation of repeated calls on the same inputs, in units of the output's own."""
        answers = np.stack([self(inputs) for _ in range(_REPEATS)])
        spread = np.sqrt(answers.var(0, ddof=1).mean(0))
        return float((spread / self.deviation(inputs)).max())

    def differentiable(self, inputs: np.ndarray) -> bool:
        """Does torch know the function's derivative?"""
        if not self._torch:
            return False
        leaf = torch.from_numpy(inputs).requires_grad_()
        try:
            answer = self._function(leaf)
            return isinstance(answer, Tensor) and answer.requires_grad
        except Exception:  # such as .numpy() of a tensor that has a gradient
            return False

    def gradients(self, inputs: np.ndarray) -> Float[np.ndarray, "count length outputs"]:
        """Norm of the derivative of every output with respect to every token.

        Outputs and coordinates are counted in their standard deviations, so that units do not
        matter: 1e-3 of one coordinate may be as much as 1e3 of another.
        """
        unit = torch.from_numpy(inputs.reshape(-1, inputs.shape[-1]).std(0))
        leaf = torch.from_numpy(inputs).requires_grad_()
        answer = self._function(leaf)
        answer = answer.reshape(len(inputs), -1)
        norms = []
        for output in answer.sum(0):
            (slope,) = torch.autograd.grad(output, leaf, retain_graph=True)
            norms.append((slope * unit).norm(dim=-1))
        return torch.stack(norms, -1).detach().numpy() / self.deviation(inputs)

    def with_token(
        self, inputs: np.ndarray, rows: np.ndarray, tokens: np.ndarray, values: np.ndarray
    ) -> Float[np.ndarray, "changes outputs"]:
        """Values where, for each i, token tokens[i] of sequence rows[i] is values[i] instead."""
        block = max(1, CHUNK_FLOATS // (inputs.shape[1] * inputs.shape[2]))
        answers = []
        for first in range(0, len(rows), block):
            part = slice(first, first + block)
            changed = inputs[rows[part]]
            changed[np.arange(len(changed)), tokens[part]] = values[part]
            answers.append(self._call(changed))
        return np.concatenate(answers)

    def accepts_length(self, inputs: np.ndarray) -> bool:
        """Can the function be asked about these sequences, shorter than those drawn?"""
        try:
            self(inputs[:2])
        except InputError:
            return False
        return True


def _failed(who: str, what: str, error: Exception) -> InputError:
    return InputError(f"the {who} failed on {what}: {type(error).__name__}: {error}")


def _numpy(answer: Any) -> Any:
    return plain_array(answer, "the target's answers") if isinstance(answer, Tensor) else answer
