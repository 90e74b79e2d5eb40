"""Models with reduced attention: modules, weights, files."""
