"""``polyseme embed``: the vectors of a text, written to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from polyseme.cli.options import (
    TEXT_FILES,
    DeviceOption,
    OverwriteOption,
    RawOption,
    ResumeOption,
    ShippedOption,
    VocabularyOption,
)
from polyseme.cli.output import file_size
from polyseme.cli.progress import announce, keep_finished, note, nothing_to_resume, shown, warn_of_raw_text, working
from polyseme.cli.summary import EmbedStatistics, FileContents
from polyseme.errors import ConfigError, OutputError, PolysemeError
from polyseme.files import check_absent, check_restart, locked_output

if TYPE_CHECKING:
    from polyseme.embedding.encoder import Encoder
    from polyseme.embedding.job import EmbedUnits
    from polyseme.embedding.parts import Parts


def embed(
    inputs: Annotated[list[str], Argument(metavar="INPUT", help=TEXT_FILES)],
    output: Annotated[Path, Option("--output", "-o", help="The file: *.h5 (AllenNLP's layout), *.parquet or *.npz.")],
    model: ShippedOption = None,
    raw: RawOption = False,
    documents: Annotated[bool, Option("--documents", help="Carry context from sentence to sentence.")] = False,
    layers: Annotated[
        str | None,
        Option(
            help="all, top, average, a number, a mix like 0.2,0.5,0.3, or a mix named in the BERT paper: embeddings, "
            "second-to-last, last, weighted-sum-last-four, concat-last-four, weighted-sum-all. "
            "[default: all; average with --pool]"
        ),
    ] = None,
    gamma: Annotated[float, Option(help="Scale of a mix.")] = 1.0,
    pooling: Annotated[
        str | None, Option(help="A word from its subwords: first, last or mean. [default: mean]")
    ] = None,
    pool: Annotated[str | None, Option(help="One vector per sentence: mean or max over its words.")] = None,
    dtype: Annotated[str, Option(help="Type of the stored numbers: float32 or float16.")] = "float32",
    boundaries: Annotated[bool, Option("--boundaries", help="Keep the boundary vectors of <S> and </S>.")] = False,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    device: DeviceOption = "cpu",
    workers: Annotated[int, Option(help="Processes, on a CPU.")] = 1,
    precision: Annotated[str, Option(help="float32; int8 on a CPU; tf32, bfloat16 or float16 on a GPU.")] = "float32",
    word_budget: Annotated[int | None, Option(help="Words per batch.", show_default="chosen for the device")] = None,
    vocabulary: VocabularyOption = None,
) -> None:
    """Write the vectors of a text to HDF5, Parquet or npz.

    The text has one sentence per line, words separated by spaces; with --raw any text will do. Blank lines separate
    documents, which --documents reads with shared context.
    """
    # Bad options are refused before the model is opened, and everything else before hours of work.
    from polyseme.embedding.job import OutputSpec, embed_into
    from polyseme.embedding.job import documents as by_document
    from polyseme.embedding.job import single_sentences as by_sentence
    from polyseme.embedding.layers import Mix, parse_choice
    from polyseme.progress import reading
    from polyseme.text.corpus import expand, plain_sizes, read_sentences

    _check_output(output, resume, overwrite)
    spec = OutputSpec(parse_choice(layers or ("average" if pool else "all"), gamma), pool, dtype, boundaries)
    if documents and workers > 1:
        raise ConfigError("--documents runs in one process; leave --workers out")
    if documents and raw:
        raise ConfigError("--documents needs one sentence per line and blank lines between documents; leave --raw out")
    if gamma != 1 and not isinstance(spec.layers, Mix):
        raise ConfigError("--gamma is the scale of a mix; give the mix with --layers, like 0.2,0.5,0.3")
    sources = expand(inputs)  # once, so that an output inside a folder of inputs is not read
    with locked_output(output):
        if _is_finished(output, resume, overwrite):
            announce(f"{output} is already finished")
            return
        from polyseme.loading import load

        settings = {"boundaries": boundaries, "workers": workers, "word_budget": word_budget, "precision": precision}
        with working(f"opening {model or 'the English model'}"):
            encoder = load(model, device=device, vocabulary=vocabulary, pooling=pooling, **settings)
        fingerprint = {"model": encoder.fingerprint(), "made": repr(spec), "precision": precision}
        parts = _begin(output, {**fingerprint, "raw": raw, "documents": documents}, resume, overwrite)
        into_units, embed_units = (
            (by_document, encoder.embed_documents) if documents else (by_sentence, _alone(encoder))
        )
        units = (
            unit
            for number, source in enumerate(sources)  # a document ends with its file; the first one may look raw
            for unit in into_units(warn_of_raw_text(read_sentences(source, raw), raw or number > 0))
        )
        statistics = EmbedStatistics(encoder, parts.done)
        with keep_finished(parts), shown(), reading(plain_sizes(sources)):
            statistics.watch(embed_into(parts, units, embed_units, spec))
        contents = _finish(parts, output)
    announce(f"{output} written ({file_size(output.stat().st_size)}): {contents}")
    if contents.sentences:
        statistics.report()
    else:
        note(f"note: there was no line in {' '.join(inputs)}, so there is no vector in {output}")


def _check_output(output: Path, resume: bool, overwrite: bool) -> None:
    """Refuse a name that cannot be written."""
    from polyseme.embedding.writers import check_suffix

    check_restart(resume, overwrite)
    check_suffix(output)
    if output.is_dir():
        raise OutputError(f"{output} cannot be written: it is a folder")


def _is_finished(output: Path, resume: bool, overwrite: bool) -> bool:
    """Whether there is nothing left to resume; refuses to replace an output, unless parts of a new one are there."""
    from polyseme.embedding.parts import parts_folder

    unfinished = parts_folder(output).exists()
    if resume and output.is_file() and not unfinished:
        return True
    check_absent(output, overwrite or (resume and unfinished))
    return False


def _alone(encoder: Encoder) -> EmbedUnits:
    return lambda units: ([vectors] for vectors in encoder.embed(words for (words,) in units))


def _begin(output: Path, settings: dict[str, str | bool], resume: bool, overwrite: bool) -> Parts:
    from polyseme.embedding.parts import Parts, parts_folder

    folder = parts_folder(output)
    if resume and not folder.exists():
        note(f"note: {nothing_to_resume(output)}")
    if resume:
        return Parts.resume(folder, settings)
    if overwrite and folder.is_dir():
        Parts(folder).remove()
    return Parts.create(folder, settings)


def _finish(parts: Parts, output: Path) -> FileContents:
    """Merge the finished parts into the output file, and remove them."""
    from polyseme.embedding.writers import write_vectors
    from polyseme.progress import track

    contents = FileContents()
    try:
        with shown():
            write_vectors(contents.count(track(parts.read(), f"writing {output}", parts.done)), output)
    except PolysemeError as error:
        raise type(error)(f"{error}; the vectors are kept in {parts.folder}; give --resume to finish") from error
    parts.remove()
    return contents
