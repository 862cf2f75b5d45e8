"""Fixtures of the fuzzing harnesses."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all inputs share: a function's own would not be made anew for each of them."""
    return tmp_path_factory.mktemp("fuzz")
