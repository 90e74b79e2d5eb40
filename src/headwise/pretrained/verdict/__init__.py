"""What follows from a verdict: the quality gate."""
