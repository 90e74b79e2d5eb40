"""Weights from a proof, with a certificate; and proof that some attention cannot be repaired."""

from headwise.build.built import Built
from headwise.build.certify.attack import Attack, Check
from headwise.build.certify.certificate import Certificate, Term
from headwise.build.memorise import memorise
from headwise.build.retrieval import retrieval
from headwise.build.witness import Witness, readout_lipschitz, witness

__all__ = [
    "Attack",
    "Built",
    "Certificate",
    "Check",
    "Term",
    "Witness",
    "memorise",
    "readout_lipschitz",
    "retrieval",
    "witness",
]
