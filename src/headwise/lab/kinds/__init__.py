"""The kinds of runs there are: a file a kind."""
