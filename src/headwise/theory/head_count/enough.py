"""What enough heads, or one wide head, promise; and when the number of features is intrinsic."""

from typing import Literal

from headwise.theory.bound import Bound, BoundVerdict, Status
from headwise.theory.checks import one_of, whole
from headwise.theory.head_count.common import (
    APPROXIMABLE,
    BOUNDED,
    PAPER,
    REGULAR,
    RELAXED,
    feature_sizes,
)

Smoothness = Literal["barron", "worst case"]


def parameters_sufficient(
    heads: int,
    intrinsic_dim: int,
    length: int,
    head_dim: int,
    token_dim: int,
    smoothness: Smoothness = "barron",
) -> Bound:
    """Theorems 2(1) and 2(3): params > C/error^p is enough; the value is p, C is unknown."""
    intrinsic_dim, length = feature_sizes(intrinsic_dim, length)
    heads, head_dim = whole("heads", heads), whole("head_dim", head_dim)
    token_dim = whole("token_dim", token_dim)
    one_of("smoothness", smoothness, ("barron", "worst case"))
    gamma = 2 if smoothness == "barron" else max(token_dim, intrinsic_dim)
    approximable = (
        f"f_i and F_0 are approximated within δ by two-layer networks of width C/δ^{gamma} "
        + ("(finite Barron norm; " if smoothness == "barron" else "(worst case: max(d, D); ")
        + "assumption 3)."
    )
    if heads >= intrinsic_dim and head_dim >= 2:
        verdict, value, theorem = BoundVerdict.RATE, gamma, "theorem 2(1)"
        statement = (
            f"One head a feature: params > C/error^{gamma} is enough. C depends on token_dim, "
            "intrinsic_dim and length; the paper leaves it unknown."
        )
    elif head_dim >= length * token_dim:
        verdict, value, theorem = BoundVerdict.RATE, gamma + 1, "theorem 2(3)"
        statement = (
            f"One head of dimension {length * token_dim:,} or more holds the whole sequence, and "
            f"a five-layer ReLU readout does the rest: params > C/error^{gamma + 1} is enough. "
            "The paper leaves C unknown."
        )
    else:
        verdict, value, theorem = BoundVerdict.NOT_APPLICABLE, None, "theorems 2(1) and 2(3)"
        statement = (
            f"Neither theorem covers {heads} heads of dimension {head_dim}: 2(1) wants "
            f"{intrinsic_dim} heads of dimension 2 or more, 2(3) one head of dimension "
            f"{length * token_dim:,} (length × token_dim) or more."
        )
    return Bound(
        quantity="exponent p such that params > C/error^p is enough",
        value=value,
        verdict=verdict,
        statement=statement,
        source=f"{PAPER}, {theorem}",
        status=Status.PROVED,
        assumptions=(approximable,),
    )


def intrinsic_dim_is_unique(first_dim: int, second_dim: int, length: int) -> Bound:
    """Corollary 1: D1² + D2² ≤ length/50 makes D1 = D2; the value is the length it needs."""
    first_dim, length = feature_sizes(first_dim, length, "first_dim")
    second_dim, length = feature_sizes(second_dim, length, "second_dim")
    needed = 50 * (first_dim**2 + second_dim**2)
    speaks = length >= needed
    if not speaks:
        statement = f"The corollary says nothing below length {needed:,}; this one is {length:,}."
    elif first_dim == second_dim:
        statement = (
            f"From length {needed:,} on, a target with {first_dim} features has no representation "
            f"with fewer: {first_dim} is intrinsic."
        )
    else:
        statement = (
            f"From length {needed:,} on, no target has both a representation with {first_dim} and "
            f"one with {second_dim} features."
        )
    return Bound(
        quantity="length from which the number of features is intrinsic",
        value=needed if speaks else None,
        verdict=BoundVerdict.HOLDS if speaks else BoundVerdict.NOT_APPLICABLE,
        statement=statement,
        source=f"{PAPER}, corollary 1",
        status=Status.PROVED,
        assumptions=(REGULAR, "Both representations look at length/4 positions or more."),
    )


def layers_condition(layers: int, heads: int, intrinsic_dim: int) -> Bound:
    """Conjecture: efficient networks have layers·heads ≥ intrinsic_dim; the value is what is over.

    It says what is needed, not that it is enough.
    """
    layers, heads = whole("layers", layers), whole("heads", heads)
    intrinsic_dim = whole("intrinsic_dim", intrinsic_dim)
    spare = layers * heads - intrinsic_dim
    if spare >= 0:
        statement = (
            f"{layers} × {heads} heads are no fewer than {intrinsic_dim} features: the conjecture "
            "forbids nothing, and does not say that they are enough."
        )
    else:
        statement = (
            f"{layers} × {heads} heads are {-spare} short of {intrinsic_dim} features: log(params) "
            "would grow like |log error|·a·length^b/(head_dim·heads), with unknown a and b that "
            "depend on the number of layers."
        )
    return Bound(
        quantity="heads to spare, layers·heads − intrinsic_dim",
        value=spare,
        verdict=BoundVerdict.HOLDS if spare >= 0 else BoundVerdict.FAILS,
        statement=statement,
        source=f"{PAPER}, conjecture on L layers",
        status=Status.CONJECTURED,
        assumptions=(REGULAR,),
    )


def heads_needed(intrinsic_dim: int, layers: int = 1) -> Bound:
    """Heads per layer for an efficient network: intrinsic_dim, shared out among the layers.

    In one layer so many are enough and fewer are not; in several the paper conjectures that fewer
    are not, and leaves open whether so many are enough.
    """
    intrinsic_dim, layers = whole("intrinsic_dim", intrinsic_dim), whole("layers", layers)
    per_layer = -(-intrinsic_dim // layers)
    if layers == 1:
        statement = (
            f"{intrinsic_dim} heads of dimension 2 are enough (2(1)); with fewer, and weights that "
            "do not grow with the accuracy, the parameters explode on long sequences (2(2))."
        )
    else:
        statement = (
            f"layers·heads ≥ {intrinsic_dim} asks for {per_layer} heads in each of {layers} equal "
            "layers; whether they are enough is not conjectured."
        )
    return Bound(
        quantity="heads needed per layer",
        value=per_layer,
        verdict=BoundVerdict.HOLDS,
        statement=statement,
        source=f"{PAPER}, " + ("theorem 2" if layers == 1 else "conjecture on L layers"),
        status=Status.PROVED if layers == 1 else Status.CONJECTURED,
        assumptions=(
            *((f"That they are enough: {APPROXIMABLE}",) if layers == 1 else ()),
            f"That fewer are not: {REGULAR}",
            f"That fewer are not: {BOUNDED}",
            f"That fewer are not: {RELAXED}",
            "The sequence is long: see lower_bound_exponent for how long.",
        ),
    )
