"""Train a smaller model to give the original's outputs again."""
