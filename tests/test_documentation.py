"""The documentation site: builds without a dead link, has every page, every command and every public name."""

import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import typer

import polyseme
import polyseme.corpus
import polyseme.tasks
import polyseme.training
from polyseme.cli import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a folder with documents and settings, as `make docs` does."""
    for name in ("docs_extension.py", "polyseme"):
        (folder / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documentation")
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    built = build(folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"


def inventory(site: Path) -> set[str]:
    """The names that the API reference describes, from the index that other projects link by."""
    head, _, packed = (site / "objects.inv").read_bytes().partition(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2")
    return {line.split()[0] for line in zlib.decompress(packed).decode().splitlines()}


def command_paths(command, path="polyseme"):
    for name, subcommand in getattr(command, "commands", {}).items():
        yield f"{path} {name}", subcommand
        yield from command_paths(subcommand, f"{path} {name}")


@pytest.mark.parametrize("package", [polyseme, polyseme.corpus, polyseme.tasks, polyseme.training])
def test_the_reference_has_every_public_name(site, package):
    public = {f"{package.__name__}.{name}" for name in package.__all__} - {
        "polyseme.__version__",
        "polyseme.from_pretrained",  # polyseme.load, and its docstring says so
        "polyseme.tasks.Tagger",  # also in polyseme itself
        "polyseme.tasks.Classifier",
        "polyseme.tasks.Pairs",
    }
    assert not public - inventory(site)


def test_the_command_reference_has_every_command_and_option(site):
    page = (site / "reference" / "commands.html").read_text("utf-8")
    commands = dict(command_paths(typer.main.get_command(app)))
    assert len(commands) > 30
    for path, command in commands.items():
        assert f'id="{path.replace(" ", "-")}"' in page, path
        for option in [name for parameter in command.params for name in parameter.opts if name.startswith("--")]:
            assert option in page, (path, option)


def test_the_navigation_has_every_page():
    linked = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    assert linked == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def test_pages_load_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="?(https?://[^" >]+)', page.read_text("utf-8"))
        assert not loaded, page


@pytest.mark.parametrize(
    ("mistakes", "messages"),
    [
        ("[page](gone.md) and [anchor](tasks.md#gone)", ["page does not exist", "anchor does not exist"]),
        ("::: polyseme.gone", ["Could not collect 'polyseme.gone'"]),
    ],
)
def test_a_dead_link_or_a_missing_reference_is_an_error(tmp_path, mistakes, messages):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n{mistakes}\n")
    (tmp_path / "docs" / "tasks.md").write_text("# Tasks\n")
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    (tmp_path / "mkdocs.yml").write_text(re.sub(r"^nav:\n(?:  .*\n)+", "", settings, flags=re.MULTILINE))
    built = build(tmp_path)
    assert built.returncode != 0
    assert all(message in built.stderr for message in messages)


def test_the_design_page_lists_the_rooms_in_the_order_of_the_contract():
    tomllib = pytest.importorskip("tomllib")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    rooms = [room.strip() for layer in contracts[0]["layers"] for room in layer.split("|")]
    listed = re.findall(r"^  (\w+)(?:/|\.py)", (DOCS / "design.md").read_text("utf-8"), flags=re.MULTILINE)
    order = {room: number for number, layer in enumerate(contracts[0]["layers"]) for room in re.findall(r"\w+", layer)}
    assert sorted(listed) == sorted(rooms)
    assert [order[room] for room in listed] == sorted(order.values())
