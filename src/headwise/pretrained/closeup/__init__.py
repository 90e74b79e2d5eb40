"""What a page shows of a model beyond its numbers: heads at work, sizes to choose from, texts."""
