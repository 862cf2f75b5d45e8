"""Fixtures that the tests share. Everything is tiny and made on the spot, or lies in ``fixtures``."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from hypothesis import settings
from tiny_models import make_encoder

from polyseme import cli
from polyseme.backends.elmo.encoder import ElmoEncoder

FIXTURES = Path(__file__).parent / "fixtures"
# Reference models of other people, beside a developer's checkout; not part of the project.
SHARED = Path(__file__).parents[2] / "shared"

torch.set_num_threads(1)  # tests run side by side

# `make fuzz` selects this profile; FUZZ_EXAMPLES is how many inputs each harness of tests/fuzz tries.
settings.register_profile(
    "fuzz", max_examples=int(os.environ.get("FUZZ_EXAMPLES", "20000")), deadline=None, print_blob=True
)
if profile := os.environ.get("HYPOTHESIS_PROFILE"):
    settings.load_profile(profile)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests cache vectors in a folder of their own, not in the user's cache."""
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


@pytest.fixture
def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


def run(capfd, *arguments) -> Outcome:
    """Run a command in this process, for speed, through the console script's entry point."""
    argv, sys.argv = sys.argv, ["polyseme", *map(str, arguments)]
    status = 0
    try:
        cli.main()
    except SystemExit as leaving:
        status = leaving.code or 0
    finally:
        sys.argv = argv
    captured = capfd.readouterr()
    return Outcome(status, captured.out, captured.err)


@pytest.fixture
def call(capfd):
    return lambda *arguments: run(capfd, *arguments)
