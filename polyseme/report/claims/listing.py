"""All claims, in order."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.errors import ConfigError
from polyseme.report.claims import context as words
from polyseme.report.claims import directions, documents, tense
from polyseme.report.claims import fine_tuning as tuning
from polyseme.report.claims import fitted_tasks as fitted
from polyseme.report.claims import syntax_and_meaning as layers
from polyseme.report.claims import transformers as company
from polyseme.report.claims import unseen_words as unseen
from polyseme.report.claims.tour import OPENING, TOUR
from polyseme.report.page.content import Claim, Part

CLAIMS: tuple[Claim, ...] = (
    words.CLAIM,
    tense.CLAIM,
    unseen.CLAIM,
    layers.CLAIM,
    fitted.MIX,
    fitted.LESS_DATA,
    tuning.CLAIM,
    directions.CLAIM,
    documents.CLAIM,
    company.CLAIM,
    fitted.GAIN,
)
TOUR_NAME = "tour"
# The labelled sets that there are claims about: folders below the one that is given.
SETS = tuple(
    sorted({name.partition("/")[0] for claim in CLAIMS for part in claim.parts for name in (*part.needs, *part.uses)})
)


def choose_claims(only: Sequence[str]) -> tuple[Claim, ...]:
    """The claims that are asked for by number; all where nothing is said, none for ``tour``."""
    if not only:
        return CLAIMS
    known = {str(claim.number): claim for claim in CLAIMS}
    for name in only:
        if name not in known and name != TOUR_NAME:
            raise ConfigError(f"there is no claim {name!r}; they are 1 to {len(CLAIMS)}, and 'tour'")
    return tuple(claim for number, claim in known.items() if number in only)


def choose_parts(claims: Sequence[Claim]) -> tuple[Part, ...]:
    """What must be measured for them, each part once; what opens the page comes first."""
    parts = [OPENING, TOUR, *(part for claim in claims for part in claim.parts)]
    return tuple({part.name: part for part in parts}.values())
