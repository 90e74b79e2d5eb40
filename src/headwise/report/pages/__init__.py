"""Pages: what is on them, the one template that they share, and a file for each kind of page."""
