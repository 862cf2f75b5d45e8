"""Language modelling with a biLM: perplexity, sentence scores, next-word prediction and word substitutes."""

from polyseme.lm.documents import Document, read_documents
from polyseme.lm.language_model import LanguageModel, SentenceScore
from polyseme.lm.perplexity import Perplexity, perplexity

__all__ = ["Document", "LanguageModel", "Perplexity", "SentenceScore", "perplexity", "read_documents"]
