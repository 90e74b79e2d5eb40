"""What there is to learn: each task draws data from a seed and knows its exact answer."""

from headwise.tasks._measure import Measured, measure
from headwise.tasks.assumptions import Assumption, check_assumptions
from headwise.tasks.images import Images
from headwise.tasks.induction import Induction
from headwise.tasks.language import Language
from headwise.tasks.maps import Affine, Bowl, Function, Product, Sum, WeightedSum
from headwise.tasks.neighbours import Neighbours
from headwise.tasks.ngram import NGram, four_gram
from headwise.tasks.protocols import ChoiceTask, SequenceTask, TextTask, TokenTask
from headwise.tasks.regression import InContextRegression
from headwise.tasks.retrieval import PRESETS, Retrieval, max_plus_min, sum_of_maxima
from headwise.tasks.text_ranking import TextRanking
from headwise.tasks.token_arrays import TokenArray

__all__ = [
    "PRESETS",
    "Affine",
    "Assumption",
    "Bowl",
    "ChoiceTask",
    "Function",
    "Images",
    "InContextRegression",
    "Induction",
    "Language",
    "Measured",
    "NGram",
    "Neighbours",
    "Product",
    "Retrieval",
    "SequenceTask",
    "Sum",
    "TextRanking",
    "TextTask",
    "TokenArray",
    "TokenTask",
    "WeightedSum",
    "check_assumptions",
    "four_gram",
    "max_plus_min",
    "measure",
    "sum_of_maxima",
]
