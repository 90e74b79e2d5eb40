"""Which of the head-count paper's assumptions does a retrieval task satisfy?

The theorems are proved for targets on the cube whose features have one non-degenerate minimum
each. Experiments, the paper's own among them, use targets outside that class; a user who reads a
bound should know which it is.
"""

from dataclasses import dataclass

import numpy as np

from headwise.tasks.maps import Affine, Bowl, Function, Product
from headwise.tasks.retrieval import Retrieval


@dataclass(frozen=True)
class Assumption:
    """One assumption: does it hold (None: cannot be told), and why."""

    name: str
    holds: bool | None
    why: str

    def __str__(self) -> str:
        mark = {True: "holds", False: "violated", None: "unknown"}[self.holds]
        return f"{self.name}: {mark} ({self.why})"


def check_assumptions(task: Retrieval) -> list[Assumption]:
    """The assumptions of theorem 2, one by one."""
    return [
        _inputs_in_cube(task),
        _large_subsets(task),
        _smooth(task),
        _unique_minimisers(task),
        _positive_hessian(task),
        _outer_gradient(task),
    ]


def _inputs_in_cube(task: Retrieval) -> Assumption:
    inside = task.inputs == "uniform"
    why = "uniform on the cube" if inside else "Gaussian tokens are unbounded"
    return Assumption("tokens lie in [0, 1]^d", inside, why)


def _large_subsets(task: Retrieval) -> Assumption:
    smallest = min(task.set_sizes)
    return Assumption(
        "every subset holds at least a quarter of the positions",
        4 * smallest >= task.length,
        f"the smallest holds {smallest} of {task.length}",
    )


def _smooth(task: Retrieval) -> Assumption:
    if isinstance(task.features, Function) or isinstance(task.outer, Function):
        return Assumption("features are C², the outer map C¹", None, "a function given as code")
    return Assumption("features are C², the outer map C¹", True, "polynomials")


def _unique_minimisers(task: Retrieval) -> Assumption:
    name = "each feature has one extremal point, and they are distinct"
    features, signs = task.features, np.array(task.signs)
    if isinstance(features, Affine):
        if task.inputs == "gaussian":
            return Assumption(name, False, "affine features have no extremum on unbounded tokens")
        weights = np.array(features.weights)
        corners = [tuple(row) for row in (weights * signs[:, None] > 0)]
        unique = bool((weights != 0).all()) and len(set(corners)) == len(corners)
        return Assumption(name, unique, "affine features are extremal at corners of the cube")
    if isinstance(features, Bowl):
        inside = all(0 < x < 1 for row in features.centres for x in row)
        distinct = len(set(features.centres)) == features.count
        if (signs > 0).any():
            return Assumption(
                name, None, "the maximum of a bowl lies at a corner; ties not checked"
            )
        return Assumption(name, inside and distinct, "the centres of the bowls")
    return Assumption(name, None, "a function given as code")


def _positive_hessian(task: Retrieval) -> Assumption:
    name = "the Hessian at each extremal point is definite"
    if isinstance(task.features, Affine):
        return Assumption(name, False, "affine features have Hessian zero")
    if isinstance(task.features, Bowl):
        bowls = all(sign < 0 for sign in task.signs)
        return Assumption(
            name, bowls, "2κ·I at the centre" if bowls else "a bowl's maximum is a corner"
        )
    return Assumption(name, None, "a function given as code")


def _outer_gradient(task: Retrieval) -> Assumption:
    name = "every partial derivative of the outer map is non-zero at the extremal values"
    if isinstance(task.outer, Function):
        return Assumption(name, None, "a function given as code")
    if isinstance(task.outer, Product):
        if isinstance(task.features, Bowl) and all(sign < 0 for sign in task.signs):
            single = task.intrinsic_dim == 1
            return Assumption(name, single, "the bowls' minima are 0, so their products vanish")
        return Assumption(name, None, "the product's derivative vanishes where another value is 0")
    weights = getattr(task.outer, "weights", (1.0,))
    return Assumption(name, all(w != 0 for w in weights), "a weighted sum")
