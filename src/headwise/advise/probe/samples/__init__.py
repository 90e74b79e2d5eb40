"""What a probe is given: samples, files, functions."""
