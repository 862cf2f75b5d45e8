"""All claims of the report in order, and what has to be measured for a choice of them."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.errors import ConfigError
from polyseme.report.claim import Claim
from polyseme.report.claims import (
    claim_01_context,
    claim_02_tense,
    claim_03_unseen_words,
    claim_04_syntax_and_meaning,
    claim_05_layer_mixing,
    claim_06_labelled_data,
    claim_07_fine_tuning,
    claim_08_directions,
    claim_09_documents,
    claim_10_transformer_layers,
    claim_11_task_gains,
)
from polyseme.report.measure.measurement import Measurement
from polyseme.report.measure.model_under_test import EvaluationData
from polyseme.report.tour import OPENING, TOUR

CLAIMS: tuple[Claim, ...] = (
    claim_01_context.CLAIM,
    claim_02_tense.CLAIM,
    claim_03_unseen_words.CLAIM,
    claim_04_syntax_and_meaning.CLAIM,
    claim_05_layer_mixing.CLAIM,
    claim_06_labelled_data.CLAIM,
    claim_07_fine_tuning.CLAIM,
    claim_08_directions.CLAIM,
    claim_09_documents.CLAIM,
    claim_10_transformer_layers.CLAIM,
    claim_11_task_gains.CLAIM,
)
TOUR_NAME = "tour"
_FILES = {file for claim in CLAIMS for each in claim.measurements for file in (*each.needs, *each.uses)}
DATA_SETS = tuple(sorted({file.partition("/")[0] for file in _FILES} - {"two-meanings", "supersenses"}))
# folders below the one given with --data


def choose_claims(only: Sequence[str]) -> tuple[Claim, ...]:
    """The claims with these numbers; all claims if none are given, no claim for ``tour``."""
    if not only:
        return CLAIMS
    known = {str(claim.number): claim for claim in CLAIMS}
    for name in only:
        if name not in known and name != TOUR_NAME:
            raise ConfigError(f"there is no claim {name!r}; choose from 1 to {len(CLAIMS)}, or 'tour'")
    return tuple(claim for number, claim in known.items() if number in only)


def choose_measurements(claims: Sequence[Claim], data: EvaluationData) -> tuple[Measurement, ...]:
    """The measurements that these claims need, each once; those of the page's introduction come first.

    Extra ones are left out if none of their data is there.
    """
    wanted = [each for claim in claims for each in claim.measurements]
    present = [each for each in wanted if not each.extra or any(name in data for name in each.needs)]
    measurements = [OPENING, TOUR, *present]
    return tuple({each.name: each for each in measurements}.values())
