"""Uses of words in a corpus: index, neighbours, senses, drift, distillation."""

from typing import TYPE_CHECKING

from polyseme.lazy import lazy_names

if TYPE_CHECKING:
    from polyseme.corpus.drift import DriftSettings, compare_corpora
    from polyseme.corpus.index import Index
    from polyseme.corpus.neighbours import nearest_uses
    from polyseme.corpus.senses import ClusterSettings, cluster_uses
    from polyseme.corpus.uses import Use, Uses, bundled_sentences, embed_uses, find_uses

__all__ = [
    "ClusterSettings",
    "DriftSettings",
    "Index",
    "Use",
    "Uses",
    "bundled_sentences",
    "cluster_uses",
    "compare_corpora",
    "embed_uses",
    "find_uses",
    "nearest_uses",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "ClusterSettings": "polyseme.corpus.senses",
        "DriftSettings": "polyseme.corpus.drift",
        "Index": "polyseme.corpus.index",
        "Use": "polyseme.corpus.uses",
        "Uses": "polyseme.corpus.uses",
        "bundled_sentences": "polyseme.corpus.uses",
        "cluster_uses": "polyseme.corpus.senses",
        "compare_corpora": "polyseme.corpus.drift",
        "embed_uses": "polyseme.corpus.uses",
        "find_uses": "polyseme.corpus.uses",
        "nearest_uses": "polyseme.corpus.neighbours",
    },
)
