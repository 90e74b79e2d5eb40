"""Studies of the allocation paper (arXiv 2510.03784)."""
