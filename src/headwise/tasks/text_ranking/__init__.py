"""Which passage answers the query? MS MARCO, or queries of one's own, with BM25 negatives."""

from headwise.tasks.text_ranking.known import MINILM, PARAGRAPHS
from headwise.tasks.text_ranking.questions import Question, read_questions
from headwise.tasks.text_ranking.ranking import TextRanking

__all__ = ["MINILM", "PARAGRAPHS", "Question", "TextRanking", "read_questions"]
