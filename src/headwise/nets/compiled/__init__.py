"""Attention layers of short sequences as compiled code."""
