"""How much is looked at: enough for a quarter of an hour, or everything."""

from __future__ import annotations

from dataclasses import dataclass

EVERYTHING = 1 << 40


@dataclass(frozen=True)
class Sizes:
    """Bounds of every part. A set that is smaller is taken whole.

    Attributes:
        tagged: Sentences of each file of UD-EWT that grammar is learnt from and measured on.
        verbs: Sentences of UD-EWT that tense is learnt from; a quarter as many are measured on.
        named: Sentences of each file of WNUT-17.
        semcor: Sentences of SemCor that senses are learnt from.
        ambiguous: Words of SemCor whose senses are set apart.
        rated: Sentences of the sentiment treebank to learn from, and as many to measure on.
        pairs: Pairs of WiC that thresholds are tuned on.
        documents: Words of running text, in whole documents, that a language model reads.
        gaps: Gaps that it fills.
        misspelt: Words that are inflected and misspelt.
        seed: Of everything drawn by lot.
    """

    tagged: int = 1_500
    verbs: int = 2_400
    named: int = 1_200
    semcor: int = 8_000
    ambiguous: int = 60
    rated: int = 2_000
    pairs: int = 1_500
    documents: int = 12_000
    gaps: int = 400
    misspelt: int = 300
    seed: int = 0


def quick() -> Sizes:
    """A quarter of an hour on two cores, for a model of the small size."""
    return Sizes()


def full() -> Sizes:
    """All of every set; hours."""
    every = EVERYTHING
    return Sizes(every, every, every, every, 400, every, every, every, 5_000, 3_000)
