"""What the tests share. Everything is tiny and made on the spot, or lies in ``fixtures``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from models import make_encoder

from polyseme.backends.elmo import ElmoEncoder

FIXTURES = Path(__file__).parent / "fixtures"
# Reference models of other people, beside a developer's checkout; not part of the project.
SHARED = Path(__file__).parents[2] / "shared"

torch.set_num_threads(1)  # tests run side by side


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Vectors that tests open are not kept among the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYSEME_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


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
