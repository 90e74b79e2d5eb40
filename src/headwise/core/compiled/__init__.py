"""Code that is compiled for the processor at hand: vectors, their operations, and the cache."""
