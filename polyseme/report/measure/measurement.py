"""What a measurement of the report is, and how large the samples are that it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest

Results = dict[str, Any]  # what a measurement gives, as JSON holds it
UNLIMITED = 1 << 40


@dataclass(frozen=True)
class SampleSizes:
    """Upper limits on the samples that measurements take; a smaller data set is used whole.

    Attributes:
        tagged: Sentences of each UD-EWT file that grammar probes train and test on.
        verbs: Sentences of UD-EWT that the tense probe trains on; it tests on a quarter as many.
        named: Sentences of each file of names.
        semcor: Sentences of SemCor that senses are learned from.
        ambiguous: Words of SemCor whose sense separation is measured.
        rated: Sentences of the sentiment treebank to train on, and as many to test on.
        pairs: Pairs of WiC that thresholds are tuned on.
        documents: Words of running text, in whole documents, for perplexity.
        gaps: Gaps that the language model fills.
        misspelt: Words that are inflected and misspelt.
        homonyms: Words with two meanings whose sentences are compared.
        fitted: Sentences that tasks learn from when they are fitted on the spot; they are tested on up to
            four times as many.
        fit_steps: Steps of the optimiser in such a fit.
        tuned: Sentences that the model is fine-tuned on.
        tuning_epochs: Passes over these sentences.
        seed: The seed of all random choices.
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
    homonyms: int = 200
    fitted: int = 250
    fit_steps: int = 50
    tuned: int = 120
    tuning_epochs: int = 3
    seed: int = 0


def full_sizes() -> SampleSizes:
    """The sample sizes of ``--full``: all of every data set, which takes hours."""
    every = UNLIMITED
    return SampleSizes(every, every, every, every, 400, every, every, every, 5_000, 3_000, every, 2_000, 100, 1_000)


@dataclass(frozen=True)
class Measurement:
    """One measurement on one model; its results are stored, so it runs once for all claims that need it.

    Attributes:
        name: The name of its results, and the beginning of its file name in the store.
        measure: The function; it raises `PolysemeError` if this model or this data does not allow it.
        needs: Files below the data folder that it cannot do without.
        sizes: The names of the `SampleSizes` limits that it depends on.
        head: Whether it also uses the language model's head.
        uses: Files below the data folder that it reads if they exist.
        extra: Whether it is left out without a word if its files are not there, since its claims can do without.
    """

    name: str
    measure: Callable[[ModelUnderTest, EvaluationData, SampleSizes], Results]
    needs: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    head: bool = False
    uses: tuple[str, ...] = ()
    extra: bool = False
