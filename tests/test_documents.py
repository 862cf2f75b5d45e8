"""The documents agree with the code: commands, options, links, pictures, and figures of the model that ships."""

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

import polyseme
from polyseme import cli
from polyseme.corpus.uses import bundled_sentences
from polyseme.formats import resolve_model_path

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
LOGS = {"CHANGELOG.md", "experiments.md"}  # they tell what was, so their commands may be gone
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
PROMISES = (
    "not yet implemented",
    "not implemented yet",
    "not supported yet",
    "not yet supported",
    "coming soon",
    "todo:",
)
# What other programs are given on our pages.
FOREIGN = {
    *("--all", "--average", "--options-file", "--weight-file", "--batch-size", "--cuda-device", "--use-sentence-keys"),
    *("--forget-sentences", "--vocab-path", "--input_format", "--input", "--output_prefix", "--output_layer"),
    *("--nproc-per-node", "--no-deps", "--group", "--version", "--help", "--no-cache", "--output-format"),
}


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text("utf-8"))


def blocks(page: Path, *languages: str) -> Iterator[str]:
    return (block for language, block in FENCE.findall(page.read_text("utf-8")) if language in languages)


def inline_code(page: Path) -> list[str]:
    return re.findall(r"`([^`\n]+)`", prose(page))


def command_lines(page: Path) -> Iterator[str]:
    """Lines after a prompt, continued ones joined, and inline code that starts with the program's name."""
    for block in blocks(page, "console"):
        lines = block.replace("\\\n", " ").splitlines()
        yield from (line.removeprefix("$ ") for line in lines if line.startswith("$ "))
    for block in blocks(page, "sh", "bash"):
        yield from block.replace("\\\n", " ").splitlines()
    yield from (code for code in inline_code(page) if code.startswith(("polyseme ", "python ", "make ")))


def calls(page: Path, program: str) -> Iterator[list[str]]:
    """What follows the program's name, for each time that a page calls it."""
    for line in () if page.name in LOGS else command_lines(page):
        words = shlex.split(line.replace("'", "’") if line.count("'") % 2 else line, comments=True)
        for place, word in enumerate(words):
            if word == program or word.endswith(f"/{program}"):
                end = next((i for i, w in enumerate(words) if i > place and re.fullmatch(r"[;|>&]+", w)), None)
                yield words[place + 1 : end]


PROGRAM = get_command(cli.app)


def options_of(command) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


def check_call(words: list[str]) -> None:
    """Follow the subcommands, then look at the options."""
    command = PROGRAM
    while getattr(command, "commands", None) and words and not words[0].startswith("-"):
        name, *words = words
        if name.isupper() or name == "...":  # `polyseme COMMAND --help`
            return
        assert name in command.commands, f"there is no command {name}"
        command = command.commands[name]
    given = {word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
    assert given <= options_of(command), f"{command.name} has no {given - options_of(command)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_a_page_exist_with_their_options(page):
    for words in calls(page, "polyseme"):
        check_call(words)


def test_scripts_that_are_named_exist_with_their_options():
    scripts = [words for page in PAGES for words in calls(page, "python") if words[0].startswith("benchmarks/")]
    assert len(scripts) > 5
    for script, *words in scripts:
        source = (ROOT / script).read_text("utf-8")
        missing = [word for word in words if word.startswith("--") and f'"{word}"' not in source]
        assert not missing, f"{script} has no {missing}"
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert {words[0] for page in PAGES for words in calls(page, "make") if words} <= set(targets)


def all_options() -> set[str]:
    def walk(command) -> Iterator[str]:
        yield from options_of(command)
        for inner in getattr(command, "commands", {}).values():
            yield from walk(inner)

    scripts = (path.read_text("utf-8") for path in ROOT.glob("benchmarks/*.py"))
    return set(walk(PROGRAM)) | {name for text in scripts for name in re.findall(r'"(--[\w-]+)"', text)}


def test_options_in_running_text_exist():
    known = all_options() | FOREIGN
    for page in PAGES:
        if page.name not in LOGS:
            named = {name for code in inline_code(page) for name in re.findall(r"(?<![\w-])--[a-z][\w-]*", code)}
            assert named <= known, f"{page.name} names options that do not exist: {named - known}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_and_a_picture_stands_once_on_a_page(page):
    links = LINK.findall(prose(page))
    pictures = Counter(target for mark, target in links if mark)
    assert all(times == 1 for times in pictures.values()), pictures
    for _, target in links:
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name} links to {target}, which is not there"
        if anchor and file.suffix == ".md" and file.parent.name != "reference":  # the site's own build checks those
            assert anchor in anchors(file), f"{page.name} links to {target}, but there is no such heading"


def anchors(page: Path) -> set[str]:
    """The anchors that code hosts and site generators make of headings."""
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_picture_of_the_documents_is_shown_somewhere():
    shown = {(page.parent / target).resolve() for page in PAGES for mark, target in LINK.findall(prose(page)) if mark}
    assert set(ROOT.glob("docs/images/*")) <= shown


@pytest.mark.parametrize("promise", PROMISES)
def test_nothing_is_promised_for_later(promise):
    assert not [page.name for page in PAGES if page.name not in LOGS and promise in page.read_text("utf-8").lower()]


def test_figures_of_the_shipped_model_are_its_own():
    """Shapes with three layers in code that is shown and not run, and numbers in the text."""
    folder = Path(resolve_model_path(None))
    elmo = polyseme.load(folder)
    for page in PAGES:
        for block in blocks(page, "py"):
            for layers, dim in re.findall(r"\((\d+), \d+, (\d+)\)", block):
                assert int(layers) != elmo.num_layers or int(dim) == elmo.dim, f"{page.name}: a vector of {dim}"
    card = (ROOT / "docs" / "models" / "english.md").read_text("utf-8")
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    assert f"| size of all files | {size:.1f} MB |" in card
    known = len((folder / "vocabulary.txt").read_text("utf-8").splitlines())
    assert {int(n.replace(",", "")) for n in re.findall(r"among the ([\d,]+) known words", card)} == {known}


def test_the_number_of_bundled_sentences_is_told_as_it_is():
    told = {
        int(number)
        for page in PAGES
        if page.name not in LOGS
        for number in re.findall(r"some (\d+)\s+sentences\s+that\s+(?:come|ship)", page.read_text("utf-8"))
    }
    assert told == {round(len(bundled_sentences()), -2)}


@pytest.mark.parametrize("name", ["README.md", "docs/performance.md"])
def test_tables_beside_minilm_are_those_of_the_stored_results(name, monkeypatch):
    """After a new measurement or model, `python benchmarks/comparison.py --write` writes them."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import comparison

    page, (place, make) = (ROOT / name).read_text("utf-8"), comparison.PAGES[name]
    assert comparison.insert(page, place, make()) == page
    sys.modules.pop("comparison")


def transcripts() -> Iterator[tuple[str, str, str]]:
    """Commands of the pages that need nothing but the package, and what the page shows as their output."""
    for page in PAGES:
        for block in () if page.name in LOGS else blocks(page, "console"):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, _, shown = part.partition("\n")
                files = re.search(r"--(corpus|index|model|static)\b", line)
                if shown.strip() and not files and re.match(r"polyseme (neighbours|predict) ", line):
                    yield page.name, line, shown


@pytest.mark.parametrize(("page", "line", "shown"), list(transcripts()), ids=lambda text: text[:30])
def test_what_a_page_shows_is_what_the_shipped_model_answers(page, line, shown, call):
    """The words and their order; figures may differ in the last digit from one processor to another."""
    done = call(*shlex.split(line, comments=True)[1:])
    assert re.sub(r"[\d.]+", "", done.out).split() == re.sub(r"[\d.]+", "", shown).split()


def test_the_tree_in_the_readme_names_every_part_of_the_package():
    tree = (ROOT / "README.md").read_text("utf-8").partition("## Where things are")[2]
    parts = [path for path in (ROOT / "polyseme").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    names = [path.name if path.suffix else f"{path.name}/" for path in parts if not path.name.startswith("__")]
    assert not [name for name in names if not re.search(rf"(^|\s){re.escape(name)}", tree)]
