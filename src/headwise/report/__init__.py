"""Figures a paper could print, and one self-contained page."""

from headwise.report.build import build_report

__all__ = ["build_report"]
