"""Networks that choose among answers: a vision transformer and a ranking encoder."""
