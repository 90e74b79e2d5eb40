"""Figures a paper could print, and self-contained pages."""

from headwise.report.build import report

__all__ = ["report"]
