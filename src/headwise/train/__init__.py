"""Many models in one program; one seed, one result."""
