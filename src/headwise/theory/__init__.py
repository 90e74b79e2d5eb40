"""Bounds and exact curves. numpy and scipy only: importing this never imports torch."""
