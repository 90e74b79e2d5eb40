"""Weights from a proof, with a certificate; and proof that some attention cannot be repaired."""

from headwise.build._frontier import Frontier, frontier
from headwise.build._memorise import memorise
from headwise.build._retrieval import retrieval
from headwise.build._witness import Witness, readout_lipschitz, witness
from headwise.build.built import Built
from headwise.build.certify.attack import Attack, Check
from headwise.build.certify.certificate import Certificate, Term
from headwise.build.certify.network import check_network_assumptions
from headwise.build.certify.trials import TrialResults, trials
from headwise.build.comparison import WitnessComparison, compare_witnesses
from headwise.build.maps.density import as_retrieval
from headwise.build.neighbours import full_rank_encoder, full_rank_head
from headwise.build.points.bands import BandedNeighbour, banded_layer
from headwise.build.points.nearly_full import NearlyFullRankLayer, nearly_full_rank_layer
from headwise.build.random_features import RandomFeaturesLayer, random_features_layer
from headwise.build.vote import majority_vote, vote_task

__all__ = [
    "Attack",
    "BandedNeighbour",
    "Built",
    "Certificate",
    "Check",
    "Frontier",
    "NearlyFullRankLayer",
    "RandomFeaturesLayer",
    "Term",
    "TrialResults",
    "Witness",
    "WitnessComparison",
    "as_retrieval",
    "banded_layer",
    "check_network_assumptions",
    "compare_witnesses",
    "frontier",
    "full_rank_encoder",
    "full_rank_head",
    "majority_vote",
    "memorise",
    "nearly_full_rank_layer",
    "random_features_layer",
    "readout_lipschitz",
    "retrieval",
    "trials",
    "vote_task",
    "witness",
]
