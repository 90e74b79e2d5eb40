"""Certificates of built networks: their terms, rounding, and attacks on them."""
