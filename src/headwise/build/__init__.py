"""Weights from a proof, with a certificate; and proof that some attention cannot be repaired."""

from headwise.build.built import Built
from headwise.build.certificate import Certificate, Term
from headwise.build.memorise import memorise
from headwise.build.retrieval import retrieval

__all__ = ["Built", "Certificate", "Term", "memorise", "retrieval"]
