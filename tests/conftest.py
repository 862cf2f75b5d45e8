"""What the tests share. Everything is tiny and made on the spot, or lies in ``fixtures``."""

from pathlib import Path

import pytest
import torch
from models import make_encoder

from polyseme.backends.elmo import ElmoEncoder

FIXTURES = Path(__file__).parent / "fixtures"
# Reference models of other people, beside a developer's checkout; not part of the project.
SHARED = Path(__file__).parents[2] / "shared"

torch.set_num_threads(1)  # tests run side by side


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture(scope="session")
def shared_fixtures() -> Path:
    if not (SHARED / "fixtures").is_dir():
        pytest.skip("needs the published toolkits' own reference models, in ../shared/fixtures")
    return SHARED / "fixtures"


@pytest.fixture
def encoder() -> ElmoEncoder:
    return make_encoder()
