"""One token after many on a CPU: all heads of a layer in as few calls as there can be."""
