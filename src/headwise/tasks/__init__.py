"""What there is to learn: each task draws data from a seed and knows its exact answer."""
