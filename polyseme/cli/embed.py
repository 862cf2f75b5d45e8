"""``polyseme embed``: vectors of a text, into a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.errors import ConfigError, OutputError, PolysemeError
from polyseme.files import check_absent

if TYPE_CHECKING:
    import numpy as np

    from polyseme.backends.elmo import ElmoEncoder
    from polyseme.embedding.layers import LayerChoice
    from polyseme.embedding.parts import Parts
    from polyseme.embedding.records import Record


@dataclass(frozen=True)
class _Wanted:
    """What is made of a sentence's vectors."""

    layers: LayerChoice
    pool: str | None
    dtype: str
    boundaries: bool
    documents: bool


def embed(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT", help="Text files, folders, patterns, or - (stdin); .gz .bz2 .xz .zst too."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to: *.h5 (AllenNLP's layout), *.parquet or *.npz.")
    ],
    model: Annotated[Path, typer.Option(help="A model of any format.")],
    raw: Annotated[bool, typer.Option("--raw", help="Raw text: split it into sentences and words first.")] = False,
    documents: Annotated[
        bool, typer.Option("--documents", help="Sentences share the context of their document; a blank line ends one.")
    ] = False,
    layers: Annotated[
        str | None,
        typer.Option(
            help="all, top, average, a number, or a mix: 0.2,0.5,0.3. [default: all; average with --pool]",
            show_default=False,
        ),
    ] = None,
    gamma: Annotated[float, typer.Option(help="The factor of a mix.")] = 1.0,
    pool: Annotated[str | None, typer.Option(help="One vector a sentence: mean or max over its words.")] = None,
    dtype: Annotated[str, typer.Option(help="float32 or float16.")] = "float32",
    boundaries: Annotated[
        bool, typer.Option("--boundaries", help="Keep the vectors of the words that open and close a sentence.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue what was interrupted.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output, and forget an interrupted run.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")] = "cpu",
    workers: Annotated[int, typer.Option(help="Processes, on a CPU.")] = 1,
    word_budget: Annotated[int, typer.Option(help="Words computed at a time.")] = 1024,
    vocabulary: Annotated[Path | None, typer.Option(help="Words of a model that reads word numbers.")] = None,
) -> None:
    """Embed text, a sentence a line, into HDF5, Parquet or npz.

    Words are apart by spaces; --raw takes any text and finds sentences and words itself.
    """
    from polyseme.embedding.layers import parse_choice
    from polyseme.embedding.writers import check_suffix

    check_suffix(output)
    check_absent(output, overwrite)
    wanted = _Wanted(parse_choice(layers or ("average" if pool else "all"), gamma), pool, dtype, boundaries, documents)
    _check(wanted, workers)
    from polyseme.loading import load
    from polyseme.text.corpus import expand

    expand(inputs)  # a missing file is told before the model is opened
    encoder = load(
        model, device=device, vocabulary=vocabulary, boundaries=boundaries, workers=workers, word_budget=word_budget
    )
    settings = {"model": encoder.fingerprint(), "layers": str(wanted.layers), "pool": str(pool), "dtype": dtype}
    settings |= {"boundaries": str(boundaries), "raw": str(raw), "documents": str(documents)}
    parts = _begin(output, settings, resume, overwrite)
    _embed(encoder, wanted, inputs, raw, parts)
    _finish(parts, output)


def _check(wanted: _Wanted, workers: int) -> None:
    """Refuse what cannot be, before anything is opened."""
    import numpy as np

    from polyseme.embedding.layers import pool

    if wanted.dtype not in ("float32", "float16"):
        raise ConfigError(f"--dtype must be float32 or float16, not {wanted.dtype!r}")
    if wanted.pool:
        pool(np.zeros((1, 1)), wanted.pool)
        if wanted.boundaries:
            raise ConfigError("--pool is over real words; leave --boundaries out")
        if wanted.layers == "all":
            raise ConfigError("--pool makes one vector of one layer; choose it with --layers top, average, 1, or a mix")
    if wanted.documents and workers > 1:
        raise ConfigError("--documents runs in one process; leave --workers out")


def _begin(output: Path, settings: dict[str, str], resume: bool, overwrite: bool) -> Parts:
    from polyseme.embedding.parts import Parts, parts_folder

    folder = parts_folder(output)
    if resume:
        return Parts.resume(folder, settings)
    if overwrite and folder.exists():
        Parts(folder).remove()
    return Parts.create(folder, settings)


def _embed(encoder: ElmoEncoder, wanted: _Wanted, inputs: list[str], raw: bool, parts: Parts) -> None:
    """Embed all sentences that are not among the parts yet."""
    from polyseme.cli.progress import Progress
    from polyseme.text.corpus import read_sentences

    already = parts.done
    try:
        with Progress(already) as progress:
            sentences = _resumed(read_sentences(inputs, raw), parts, wanted)
            records = _document_records if wanted.documents else _sentence_records
            for record, words in records(encoder, sentences, wanted, already):
                parts.append([record])
                progress.advance(words, sum(map(encoder.words.crops, words)))
            parts.flush()
            progress.report(encoder)
    except (KeyboardInterrupt, PolysemeError, OSError) as error:
        _keep(parts)
        if isinstance(error, KeyboardInterrupt):
            typer.echo(
                f"interrupted: {parts.done:,} sentences are kept; the same command with --resume goes on", err=True
            )
            raise SystemExit(130) from None
        raise


def _keep(parts: Parts) -> None:
    """Save what is finished; a run that finished nothing leaves nothing behind."""
    try:
        parts.flush()
    finally:
        if not parts.done:
            parts.remove()


def _finish(parts: Parts, output: Path) -> None:
    from polyseme.embedding.writers import write_vectors

    try:
        write_vectors(parts.read(), output)
    except PolysemeError as error:
        raise type(error)(f"{error}; the vectors are kept in {parts.folder}: --resume finishes") from error
    parts.remove()
    typer.echo(f"{output} written ({output.stat().st_size / 1e6:,.1f} MB)")


def _resumed(sentences: Iterator[list[str]], parts: Parts, wanted: _Wanted) -> Iterator[list[str]]:
    """The same sentences, after a look whether those that are done are still what they were."""
    done = parts.read() if parts.done else iter(())
    for number, words in enumerate(sentences):
        if number < parts.done and (record := next(done, None)) and record.words != _shown(words, wanted):
            raise OutputError(
                f"sentence {number} of the input has changed since {parts.folder} was begun; use --overwrite"
            )
        yield words


def _sentence_records(
    encoder: ElmoEncoder, sentences: Iterator[list[str]], wanted: _Wanted, done: int
) -> Iterator[tuple[Record, list[str]]]:
    from collections import deque
    from itertools import islice

    read: deque[list[str]] = deque()

    def remembered() -> Iterator[list[str]]:
        for words in islice(sentences, done, None):
            read.append(words)
            yield words

    for vectors in encoder.embed(remembered()):
        words = read.popleft()
        yield _record(words, vectors, wanted), words


def _document_records(
    encoder: ElmoEncoder, sentences: Iterator[list[str]], wanted: _Wanted, done: int
) -> Iterator[tuple[Record, list[str]]]:
    """Documents end at empty sentences, which are kept so that numbers stay those of the lines."""
    number = 0
    for empty, group in groupby(sentences, key=lambda words: not words):
        document = list(group)
        number += len(document)
        if number <= done:
            continue
        for vectors, words in _unfinished(_embed_document(encoder, document, empty), document, done - number):
            yield _record(words, vectors, wanted), words


def _embed_document(encoder: ElmoEncoder, document: list[list[str]], empty: bool) -> Iterable[np.ndarray]:
    return encoder.embed(document) if empty else next(encoder.embed_documents([document]))


def _unfinished(
    vectors: Iterable[np.ndarray], document: list[list[str]], negative: int
) -> Iterator[tuple[np.ndarray, list[str]]]:
    """The last sentences of a document; those before them were done in an earlier run."""
    pairs = list(zip(vectors, document, strict=True))
    yield from pairs[max(0, len(pairs) + negative) :]


def _record(words: list[str], vectors: np.ndarray, wanted: _Wanted) -> Record:
    from polyseme.embedding.layers import choose, pool
    from polyseme.embedding.records import Record

    chosen = choose(vectors, wanted.layers)
    return Record(_shown(words, wanted), (pool(chosen, wanted.pool) if wanted.pool else chosen).astype(wanted.dtype))


def _shown(words: list[str], wanted: _Wanted) -> list[str]:
    from polyseme.text.vocabulary import BOS, EOS

    return [BOS, *words, EOS] if wanted.boundaries else words
