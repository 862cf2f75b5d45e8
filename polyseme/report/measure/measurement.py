"""How much is looked at: enough for a quarter of an hour, or everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest

Results = dict[str, Any]  # what a part found, as JSON holds it
EVERYTHING = 1 << 40


@dataclass(frozen=True)
class SampleSizes:
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


def quick() -> SampleSizes:
    """A quarter of an hour on two cores, for a model of the small size."""
    return SampleSizes()


def full() -> SampleSizes:
    """All of every set; hours."""
    every = EVERYTHING
    return SampleSizes(every, every, every, every, 400, every, every, every, 5_000, 3_000)


@dataclass(frozen=True)
class Measurement:
    """Something that is measured once.

    Attributes:
        name: Of the part, and of its file in the store.
        measure: What does it; raises `PolysemeError` where this model or this data do not allow it.
        needs: Files below the folder of data, without which it cannot be done.
        sizes: The names of the bounds in `SampleSizes` that it heeds.
        head: Whether it looks at the language model's head, too.
        uses: Files below the folder of data that it looks at where they are there.
    """

    name: str
    measure: Callable[[ModelUnderTest, EvaluationData, SampleSizes], Results]
    needs: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    head: bool = False
    uses: tuple[str, ...] = ()
