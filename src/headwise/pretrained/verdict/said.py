"""What the original says of a text: the same for every smaller model, so it is computed once.

Predictions over a vocabulary would take gigabytes. What a model's last block puts out takes
megabytes, and run with its blocks left out, the model says the same to the last bit. That is tried
on the shortest batch before anything is kept. Before what was kept is used, that batch is computed
again: what a hook does, or another number of threads, is not in the key.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from math import nan
from typing import Any

import torch
from torch import Tensor

from headwise.pretrained.adapters import AttentionSite
from headwise.pretrained.measure.comparing import Inputs, Objective, OneForAll
from headwise.pretrained.measure.store import Kept, Tensors, outputs_key
from headwise.pretrained.model.earlier import block_around, saying
from headwise.pretrained.model.mode import evaluating
from headwise.pretrained.text.calibration import token_count

_BYTES = 2**28  # that may be kept of a text: some 35,000 tokens of a model 2,048 wide, in float32
_ANSWER = "one_for_all"


class Said:
    """The original's outputs for these batches, by their number: `said[0]`.

    With `cache` they are kept on disk. `judged` tells that `one_for_all` will be asked for.
    """

    def __init__(
        self,
        model: Any,
        sites: list[AttentionSite],
        objective: Objective,
        batches: list[Inputs],
        *,
        cache: bool,
        judged: bool = False,
    ) -> None:
        self._model, self._batches = model, batches
        self._one_for_all = OneForAll(objective) if judged else None
        self._answer: float | None = None  # of OneForAll, when all batches were seen
        self._stacks = _stacks(model, sites)
        self._states: list[Tensors] | None = [{} for _ in batches]  # None: cannot be kept
        self._others: dict[str, int] = {}  # of a stack whose blocks put out tuples: how many more
        self._places: dict[str, torch.device] = {}  # of the stacks' last blocks
        self._bytes = 0
        sizes = [token_count([batch]) for batch in batches]
        self._shortest = sizes.index(min(sizes)) if sizes else 0
        self._seen: set[int] = set()
        options = ["judged"] if judged else []
        self._kept = Kept(outputs_key(model, batches, objective, options) if cache else None)
        tensors = self._kept.read("outputs")
        if tensors is not None:
            self._take(tensors)

    def __len__(self) -> int:
        return len(self._batches)

    @torch.no_grad()
    def __getitem__(self, index: int) -> Any:
        with evaluating(self._model):
            if self._states is not None and self._states[index]:
                return self._again(index)
            return self._first(index)

    @property
    def one_for_all(self) -> float | None:
        """What one answer for all inputs would lose, as `OneForAll` says; all batches were seen."""
        return self._answer

    def _first(self, index: int) -> Any:
        """Computed, and remembered as far as that can be done."""
        if self._states is None:
            outputs = self._model(**self._inputs(index))
        else:
            outputs, states = self._recorded(index)
            self._remember(index, states, outputs)
        if index not in self._seen:
            self._seen.add(index)
            if self._one_for_all is not None:
                self._one_for_all.see(outputs, self._inputs(index))
            if len(self._seen) == len(self._batches):
                self._finish()
        return outputs

    def _remember(self, index: int, states: Tensors | None, outputs: Any) -> None:
        if self._states is None or states is None:
            self._states = None  # from now on all are computed
            return
        self._bytes += sum(state.nbytes for state in states.values())
        self._states[index] = states
        if self._bytes > _BYTES or (index == self._shortest and not self._exact(index, outputs)):
            self._states = None

    def _exact(self, index: int, outputs: Any) -> bool:
        """Whether the model says the same without its blocks; one may not run without them."""
        try:
            return _same(self._again(index), outputs)
        except Exception:
            return False

    def _finish(self) -> None:
        """All batches were seen: keep what is known of them."""
        self._answer = None if self._one_for_all is None else self._one_for_all.damage
        if self._states is None:
            return
        answer = nan if self._answer is None else self._answer
        tensors = {_ANSWER: torch.tensor(answer, dtype=torch.float64)}
        for index, states in enumerate(self._states):
            tensors |= {f"{index}.{stack}": state.cpu() for stack, state in states.items()}
        self._kept.finish(tensors, "outputs")

    def _take(self, tensors: Tensors) -> None:
        """What was kept, if the shortest batch still gives the same."""
        answer = float(tensors.pop(_ANSWER, torch.tensor(nan)))
        kept: list[Tensors] = [{} for _ in self._batches]
        for name, state in tensors.items():
            index, stack = name.split(".", 1)
            kept[int(index)][stack] = state
        with torch.no_grad(), evaluating(self._model):
            _, states = self._recorded(self._shortest)
        if states is not None and _equal(states, kept[self._shortest]):
            self._states = kept
            self._answer = None if answer != answer else answer

    def _recorded(self, index: int) -> tuple[Any, Tensors | None]:
        """The outputs, and what each stack's last block put out, if it did once and it is a tensor,
        or a tuple of one and of what only the next block would have needed."""
        states: Tensors = {}
        plain = True

        def see(stack: str, value: Any) -> None:
            nonlocal plain
            if isinstance(value, tuple):
                self._others[stack] = len(value) - 1
                value = value[0]
            plain = plain and isinstance(value, Tensor) and stack not in states
            if plain:
                self._places[stack] = value.device
                states[stack] = value.detach().clone(memory_format=torch.contiguous_format)

        with ExitStack() as watching:
            for stack, blocks in self._stacks.items():
                last = self._model.get_submodule(blocks[-1])
                hook = last.register_forward_hook(
                    lambda _module, _inputs, value, stack=stack: see(stack, value)
                )
                watching.callback(hook.remove)
            outputs = self._model(**self._inputs(index))
        return outputs, states if plain and states.keys() == self._stacks.keys() else None

    def _again(self, index: int) -> Any:
        """The outputs from what the last blocks put out."""
        assert self._states is not None
        inputs = self._inputs(index)
        with ExitStack() as left_out:
            for stack, blocks in self._stacks.items():
                # In memory of its own, as when it was computed: last bits may depend on its place.
                state = self._states[index][stack].to(self._places[stack], copy=True)
                others = self._others.get(stack)
                value = state if others is None else (state, *[None] * others)
                for path in blocks:
                    left_out.enter_context(saying(self._model.get_submodule(path), value))
            return self._model(**inputs)

    def _inputs(self, index: int) -> Inputs:
        device = next(self._model.parameters()).device
        return {name: value.to(device) for name, value in self._batches[index].items()}


def _stacks(model: Any, sites: list[AttentionSite]) -> dict[str, list[str]]:
    """The blocks of each list of blocks, in its order; a model of encoder and decoder has two."""
    stacks: dict[str, list[str]] = {}
    for block in dict.fromkeys(block_around(model, site.path) for site in sites):
        stacks.setdefault(block.rpartition(".")[0], []).append(block)
    return stacks


def _same(one: Any, other: Any) -> bool:
    """Whether two outputs hold the same tensors, to the last bit."""
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return False
    pairs = [
        {name: value for name, value in outputs.items() if isinstance(value, Tensor)}
        for outputs in (one, other)
    ]
    return _equal(*pairs)


def _equal(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
