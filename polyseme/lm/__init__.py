"""The language model as such: how likely a text is, which word comes next, which would fit here."""

from polyseme.lm.documents import Document, read_documents
from polyseme.lm.language_model import LanguageModel, SentenceScore
from polyseme.lm.perplexity import Perplexity, perplexity

__all__ = ["Document", "LanguageModel", "Perplexity", "SentenceScore", "perplexity", "read_documents"]
