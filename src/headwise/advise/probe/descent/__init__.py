"""Training from many heads to one, and reading the transition off the errors."""
