"""Networks, small enough to read at a sitting."""
