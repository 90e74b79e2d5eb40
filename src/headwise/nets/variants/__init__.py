"""Variants of a head, one a page, each as a few steps that differ from plain attention's."""

from headwise.nets.variants._variant import Variant
from headwise.nets.variants.named import VARIANTS, find_variant

__all__ = ["VARIANTS", "Variant", "find_variant"]
