"""What verdicts rest on, and what follows from them: the quality gate."""
