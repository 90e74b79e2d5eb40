"""Calibration material."""
