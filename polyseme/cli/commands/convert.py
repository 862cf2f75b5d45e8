"""``polyseme convert``: a model from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from polyseme.cli.options import OverwriteOption, VocabularyOption
from polyseme.cli.output import file_size
from polyseme.cli.progress import announce
from polyseme.errors import ConfigError, nearest
from polyseme.files import locked_output, make_folder

PRECISIONS = ("fp32", "fp16", "int8")


def convert(
    source: Annotated[Path, Argument(metavar="IN", help="A model of any format: file, folder, zip or tar.gz.")],
    target: Annotated[
        Path, Argument(metavar="OUT", help="A new folder (polyseme's format) or file *.hdf5 (bilm-tf's).")
    ],
    precision: Annotated[str, Option(help="How polyseme's format stores weights: fp32, fp16 or int8.")] = "fp32",
    vocabulary: VocabularyOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Convert a model to polyseme's format or to bilm-tf's HDF5."""
    if precision not in PRECISIONS:
        raise ConfigError(f"--precision must be fp32, fp16 or int8, not {precision!r}.{nearest(precision, PRECISIONS)}")
    from polyseme.formats import bilm_hdf5, native, open_extras, open_model, open_softmax
    from polyseme.loading import ELMO, backend_of

    if source.exists() and (backend := backend_of(source)) is not ELMO:
        raise ConfigError(f"{source} is {backend.kind}; only ELMo models can be converted")
    if target.suffix in bilm_hdf5.SUFFIXES and precision != "fp32":
        raise ConfigError(f"bilm-tf's HDF5 holds fp32 only; leave --precision {precision} out")
    model = open_model(source, vocabulary)
    make_folder(target.parent)
    if target.suffix in bilm_hdf5.SUFFIXES:
        with locked_output(target):
            bilm_hdf5.save(model, target, overwrite)
        without = "; they have no place for its softmax" if model.softmax else ""
        announce(f"{target} and {bilm_hdf5.options_path(target).name} written, for bilm-tf and AllenNLP{without}")
    else:
        with locked_output(target):
            softmax = open_softmax(source) if model.softmax else None
            extras = open_extras(source)
            native.save(model, target, precision, overwrite, softmax=softmax, extras=extras)  # pyright: ignore[reportArgumentType]
        total = sum(file.stat().st_size for file in target.iterdir())
        head = f" with its softmax over {softmax.config.num_words:,} words" if softmax else ""
        announce(f"{target} written ({file_size(total)}, {precision}), from {model.format}{head}")
