"""What a model does, measured: moments, objectives, importance."""
