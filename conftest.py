"""Every ```python block of a page runs as a test; other fences (```py, ```console) are shown only.

The blocks of a page share one namespace and run in the repository's root, so that ``tests/fixtures/tiny`` is a path in
them. A block is plain code with ``assert``, or a session with ``>>>`` prompts whose output is compared.
"""

from pathlib import Path

import pytest
from sybil import Document, Example, Sybil
from sybil.example import NotEvaluated
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).parent


class Page(Document):
    """Runs a block only after those above it, for xdist may have given them to another process."""

    def __init__(self, text: str, path: str) -> None:
        super().__init__(text, path)
        self._begun: set[int] = set()
        self.push_evaluator(self._run_blocks_above)

    def _run_blocks_above(self, example: Example) -> None:
        self._begun.add(example.start)
        for above in self.examples():
            if above.start < example.start and above.start not in self._begun:
                above.evaluate()
        raise NotEvaluated


@pytest.fixture
def in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in the examples start at the repository's root."""
    monkeypatch.chdir(ROOT)


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md"],
    excludes=["*/README.md"],  # of folders inside
    fixtures=["in_root"],
    document_types={".md": Page},
).pytest()
