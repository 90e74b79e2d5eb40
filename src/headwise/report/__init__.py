"""Figures a paper could print, and one self-contained page."""
