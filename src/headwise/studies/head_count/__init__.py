"""Studies of the head-count paper (arXiv 2510.06662)."""
