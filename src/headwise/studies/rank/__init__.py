"""Studies of the rank paper (arXiv 2407.16153)."""
