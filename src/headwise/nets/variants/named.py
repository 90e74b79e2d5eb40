"""The variants by their texts: "plain", "grouped:2", "mixture:1:3", …"""

from dataclasses import fields
from functools import cache

from headwise.core.errors import InputError, require
from headwise.nets.shape import AttentionShape
from headwise.nets.variants._variant import Variant
from headwise.nets.variants.banded import BandedHeads
from headwise.nets.variants.differential import DifferentialHeads
from headwise.nets.variants.gated import GatedHeads
from headwise.nets.variants.grouped import GroupedHeads
from headwise.nets.variants.linear import LinearHeads
from headwise.nets.variants.mixture import MixtureOfHeads
from headwise.nets.variants.plain import PlainHeads
from headwise.nets.variants.talking import TalkingHeads
from headwise.nets.variants.top_k import TopKHeads
from headwise.nets.variants.window import WindowedHeads

VARIANTS: dict[str, type[Variant]] = {
    kind.title: kind
    for kind in (
        PlainHeads,
        GroupedHeads,
        TalkingHeads,
        BandedHeads,
        WindowedHeads,
        TopKHeads,
        MixtureOfHeads,
        GatedHeads,
        DifferentialHeads,
        LinearHeads,
    )
}
"""Every variant by its name."""


def find_variant(text: str) -> Variant:
    """The variant of a text: its name, and after colons its numbers, or as many as differ."""
    require(isinstance(text, str), f"attention is a text such as 'grouped:2', not {text!r:.60}")
    return _found(text)


@cache
def _found(text: str) -> Variant:
    name, *numbers = text.split(":")
    if name not in VARIANTS:
        raise InputError(f"there is no attention {text!r:.60}; there are {', '.join(_forms())}")
    names = [field.name for field in fields(VARIANTS[name])]
    whole = all(number.isascii() and number.isdigit() and len(number) < 10 for number in numbers)
    require(
        len(numbers) <= len(names) and whole,
        f"attention {text!r:.60} is not of the form {_form(name)}, with whole numbers",
    )
    return VARIANTS[name](**dict(zip(names, map(int, numbers), strict=False)))


def settled(text: str, layers: tuple[AttentionShape, ...]) -> str:
    """The one text of a variant (equal variants, equal texts), of which all layers have a form."""
    variant = find_variant(text)
    for layer in layers:
        variant.check(layer)
    return str(variant)


def _form(name: str) -> str:
    return ":".join([name, *(field.name for field in fields(VARIANTS[name]))])


def _forms() -> list[str]:
    return [_form(name) for name in VARIANTS]
