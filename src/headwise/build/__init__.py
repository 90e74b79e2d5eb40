"""Networks whose weights come from a proof, with a certificate of their error."""
