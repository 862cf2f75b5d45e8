"""``polyseme static``: static word vectors: train word2vec, look at a file of vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from polyseme.cli.commands.info import info
from polyseme.cli.corpus_source import TextFiles
from polyseme.cli.options import TEXT_FILES, OverwriteOption, RawOption, ResultOptions, SeedOption, expand_options
from polyseme.cli.output import decimals, show_table
from polyseme.cli.progress import announce, working
from polyseme.files import check_absent, check_writable, locked_output

if TYPE_CHECKING:
    from polyseme.corpus.word2vec import ProgressCallback, Word2VecSettings

static = typer.Typer(
    name="static",
    help="Train word2vec, or look at a file of static vectors.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

TextArgument = Annotated[list[str], Argument(metavar="TEXT", help=TEXT_FILES)]
OutputOption = Annotated[Path, Option("--output", "-o", help="The file to write, in word2vec's text format.")]
_NOT_TEXT = (".gz", ".bz2", ".xz", ".zst", ".bin", ".npy", ".npz", ".h5", ".hdf5", ".parquet", ".safetensors")
VectorsArgument = Annotated[
    Path, Argument(metavar="VECTORS", help="GloVe, word2vec or fastText; text, binary or .npy.")
]


@static.command(no_args_is_help=True)
def fit(
    inputs: TextArgument,
    output: OutputOption,
    raw: RawOption = False,
    dim: Annotated[int, Option(help="Dimensions of a vector.")] = 100,
    window: Annotated[int, Option(help="Words on each side that count as context.")] = 5,
    epochs: Annotated[int, Option(help="Passes over the text.")] = 5,
    min_count: Annotated[int, Option(help="Minimum number of uses of a word.")] = 5,
    skip_gram: Annotated[bool, Option("--skip-gram", help="Slower than CBOW, better for rare words.")] = False,
    negative: Annotated[int, Option(help="Negative samples per word.")] = 5,
    seed: SeedOption = 1,
    workers: Annotated[int, Option(help="Threads. One gives the same vectors each time; more do not.")] = 1,
    overwrite: OverwriteOption = False,
) -> None:
    """Train word2vec on your own text.

    The text has one sentence per line, words separated by spaces; with --raw any text will do.
    """
    from polyseme.corpus.word2vec import Word2VecSettings
    from polyseme.errors import require

    settings = Word2VecSettings(dim, window, epochs, min_count, skip_gram, negative, seed, workers)
    require("gensim.models", "static")  # before the text is read
    with locked_output(output):
        check_output(output, overwrite)
        with rereadable(inputs, raw) as text:
            words = _fit(text, settings, output)
    announce(f"{output} written: {words:,} words of {dim} dimensions")


static.command(no_args_is_help=True)(info)


@static.command(no_args_is_help=True)
@expand_options
def nearest(
    vectors: VectorsArgument,
    words: Annotated[list[str], Argument(metavar="WORD", help="One or more words.")],
    *,
    top: Annotated[int, Option(min=1, help="How many neighbours to show.")] = 10,
    output: ResultOptions,
) -> None:
    """Show the nearest words by cosine similarity."""
    output.check()
    encoder = _open(vectors)
    found = {word: encoder.nearest(word, top) for word in words}
    table = {word: [near._asdict() for near in nears] for word, nears in found.items()}
    output.present(table, lambda: _show_nearest(encoder.name, found))


def _show_nearest(name: str, found: Mapping[str, Sequence[tuple[str, float]]]) -> None:
    for word, nears in found.items():
        show_table(f"{word}, {name}", ("most similar", "cosine"), [(w, decimals(c)) for w, c in nears])


def check_output(path: Path, overwrite: bool) -> None:
    """Refuse an output file that cannot be written, before the work is done."""
    from polyseme.errors import OutputError

    check_absent(path, overwrite)
    check_writable(path)
    if path.suffix.lower() in _NOT_TEXT:
        name = path.name.split(".")[0]
        raise OutputError(
            f"{path} cannot be written: vectors are written as plain text; name it {name}.txt, for example"
        )


@contextmanager
def rereadable(inputs: Sequence[str], raw: bool) -> Iterator[TextFiles]:
    """Text that can be read several times: raw text is split once, and standard input stored, in a temporary file."""
    import tempfile

    text = TextFiles(inputs, raw)
    if not raw and "-" not in text.sources:
        yield text
        return
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        path = Path(folder) / "sentences.txt"
        _store(text, path)
        yield TextFiles([str(path)], raw=False)


def _store(text: TextFiles, path: Path) -> None:
    from polyseme.errors import OutputError, PolysemeError

    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{' '.join(words)}\n" for words in text)
    except OSError as error:
        if isinstance(error, PolysemeError):
            raise
        place, why = path.parent.parent, error.strerror or error
        raise OutputError(
            f"the words of the text cannot be stored in {place}: {why}; TMPDIR sets another folder"
        ) from error


def _fit(text: TextFiles, settings: Word2VecSettings, output: Path) -> int:
    import logging

    from polyseme.corpus.word2vec import fit_word2vec
    from polyseme.formats.vectors.text import write

    logging.getLogger("gensim").setLevel(logging.ERROR)  # it warns of small texts
    # gensim 4.4 takes a dot product of exactly -1, one in some ten million, for a failure, and prints a false alarm.
    with _status(settings.epochs) as report, redirect_stderr(None):
        result = fit_word2vec(text, settings, report)
    write(output, result.words, result.vectors, settings.dim)
    return len(result.words)


@contextmanager
def _status(epochs: int) -> Iterator[ProgressCallback]:
    """Progress of word2vec: the epoch, and the sentences read in it."""
    with working("counting words") as now:

        def report(epoch: int, sentences: int) -> None:
            now.what = f"epoch {epoch} of {epochs}" if epoch else "counting words"
            now.done = sentences

        yield report


def _open(vectors: Path):  # noqa: ANN202 - a StaticEncoder, which is not imported before it is needed
    from polyseme.backends.static import open_static

    with working(f"opening {vectors}"):
        return open_static(vectors)
