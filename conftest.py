"""Every ```python block of a page runs as a test, and in the quickstarts the ```console blocks too.

Other fences (```py, ```sh) are shown only. The blocks of a page share one namespace. They run in the repository's
root, so that ``tests/fixtures/tiny`` is a path in them; those of a quickstart run in a folder of their own, as a
reader's do. A Python block is plain code with ``assert``, or a session with ``>>>`` prompts whose output is compared.
Of a console block the ``polyseme`` commands are run, in this process, and what is shown below one is compared with
its standard output.
"""

import shlex
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from doctest import Example as Expected
from pathlib import Path

import pytest
from sybil import Document, Example, Sybil
from sybil.example import NotEvaluated
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

ROOT = Path(__file__).parent
FLAGS = ELLIPSIS | NORMALIZE_WHITESPACE


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


class ConsoleParser(CodeBlockParser):
    """Runs the ``polyseme`` commands of a console block; other commands are shown only."""

    language = "console"

    def evaluate(self, example: Example) -> str | None:
        """Run one command after another; the difference, if an output is not the one that is shown."""
        for part in example.parsed.replace("\\\n", "").split("$ ")[1:]:
            command, _, shown = part.partition("\n")
            name, *arguments = shlex.split(command, comments=True)
            if name == "polyseme" and (difference := _run(arguments, shown)):
                return f"{command}\n{difference}"
        return None


def _run(arguments: list[str], shown: str) -> str | None:
    from typer.testing import CliRunner

    from polyseme.cli import app

    result = CliRunner().invoke(app, arguments)
    if result.exception is not None:
        raise result.exception
    if not shown.strip() or OutputChecker().check_output(shown, result.stdout, FLAGS):
        return None
    return OutputChecker().output_difference(Expected("", shown), result.stdout, FLAGS)


@pytest.fixture
def in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in the examples start at the repository's root."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def in_empty_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a quickstart, with the beginning of what it downloads; a fit takes two steps, not minutes."""
    from polyseme.tasks import FitSettings, Tagger

    folders = request.config.stash.setdefault(FOLDERS, {})
    page = request.node.path
    if page not in folders:
        folders[page] = tmp_path_factory.mktemp(page.stem)
        for download in page.parent.glob("*.conll"):
            start = download.read_text("utf-8").split("\n\n")[:20]
            (folders[page] / download.name).write_text("\n\n".join(start), "utf-8")
    monkeypatch.chdir(folders[page])
    monkeypatch.setenv("POLYSEME_CACHE", str(folders[page] / "cache"))
    monkeypatch.setattr(Tagger, "default_fit", FitSettings(epochs=1, epoch_steps=2))


FOLDERS = pytest.StashKey[dict[Path, Path]]()
python = PythonCodeBlockParser(doctest_optionflags=FLAGS)
pages = Sybil(
    parsers=[python],
    patterns=["README.md", "docs/*.md"],
    excludes=["*/README.md", "docs/quickstarts/*"],  # of folders inside
    fixtures=["in_root"],
    document_types={".md": Page},
)
quickstarts = Sybil(
    parsers=[python, ConsoleParser()],
    patterns=["docs/quickstarts/*.md"],
    fixtures=["in_empty_folder"],
    document_types={".md": Page},
)
pytest_collect_file = (pages + quickstarts).pytest()
