"""Figures a paper could print, and one self-contained page."""

from headwise.report.build import report

__all__ = ["report"]
