"""Which head keeps how much: allocation, baselines, the plan file."""
