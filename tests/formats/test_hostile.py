"""Every hostile model is refused in one short sentence, or opens right, within 10 seconds and 1.5 GB."""

import sys

import pytest
from hostile_models import CASES
from hostile_models.judge import faults
from hostile_models.pickles import TRACE


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured through /proc")
@pytest.mark.timeout(600)
def test_hostile_models_are_refused_in_a_sentence_or_open_right(tmp_path):
    names = [name for name, case in CASES.items() if not case.slow]
    assert len(names) > 200
    assert not faults(names, tmp_path)
    assert not TRACE.exists(), "code of a pickle has run"
