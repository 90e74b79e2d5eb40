"""Studies: what to sweep; the store: what came out; run: doing it, here."""
