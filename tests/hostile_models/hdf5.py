"""Hostile bilm-tf models: HDF5 files that point elsewhere or promise too much, and options that lie."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hostile_models.case import OPENS, OVER_BUDGET, Make, hostile, pipe, register_all, written
from polyseme.errors import require

FIXTURES = Path(__file__).parents[1] / "fixtures"
KERNEL, BIAS = (f"RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/{name}" for name in ("W_0", "B"))
h5py = require("h5py", "hdf5")


def model(folder: Path) -> Path:
    place = folder / "model"
    place.mkdir()
    for file in (FIXTURES / "bilm-relu").iterdir():
        shutil.copyfile(file, place / file.name)
    return place


def with_file(change: Callable[[Any, Path], object]) -> Make:
    def make(folder: Path) -> Path:
        place = model(folder)
        with h5py.File(place / "weights.hdf5", "a") as file:
            change(file, place)
        return place

    return make


def with_options(change: Callable[[Any], object]) -> Make:
    def make(folder: Path) -> Path:
        place = model(folder)
        options = json.loads((place / "options.json").read_text())
        change(options)
        written(place / "options.json", json.dumps(options))
        return place

    return make


def replaced(name: str, data: Any = None, **settings: Any) -> Make:
    def change(file: Any, _: Path) -> None:
        array = file[name][...] if data is None else data
        del file[name]
        file.create_dataset(name, data=array, **settings)

    return with_file(change)


def declared(chunks: tuple[int, int], maxshape: tuple[None, None] | None = None, size: int = 131_072) -> Make:
    """A dataset of which nothing is stored, and options that ask for it."""

    def make(folder: Path) -> Path:
        place = with_options(lambda o: o["lstm"].update(dim=size, projection_dim=size))(folder)
        with h5py.File(place / "weights.hdf5", "w") as file:
            for name in (KERNEL, KERNEL.replace("RNN_0", "RNN_1")):
                file.create_dataset(name, (2 * size, 4 * size), "f4", chunks=chunks, maxshape=maxshape)
            for name, dataset in _small(size).items():
                file.create_dataset(name, dataset, "f4", chunks=True)
        return place

    return make


def _small(size: int) -> dict[str, tuple[int, ...]]:
    """The first few tensors that the fixture's options ask for, in their shapes."""
    with h5py.File(FIXTURES / "bilm-relu" / "weights.hdf5") as file:
        names: list[str] = []
        file.visit(names.append)
        found = {name: file[name].shape for name in names if isinstance(file[name], h5py.Dataset)}
    shapes = {name: shape for name, shape in found.items() if not name.startswith("RNN")}
    return {name: _wide(name, shape, size) for name, shape in shapes.items()}


def _wide(name: str, shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    return (*shape[:-1], size) if name.startswith("CNN_proj") else shape


def link(target: Any, name: str = "RNN_0") -> Make:
    def change(file: Any, place: Path) -> None:
        del file[name]
        file[name] = target(place) if callable(target) else target

    return with_file(change)


def _virtual(file: Any, place: Path) -> None:
    shape = file[KERNEL].shape
    layout = h5py.VirtualLayout(shape, "f4")
    layout[...] = h5py.VirtualSource("/etc/passwd", "x", shape)
    del file[KERNEL]
    file.create_virtual_dataset(KERNEL, layout)


def _foreign_filter(file: Any, place: Path) -> None:
    shape = file[KERNEL].shape
    del file[KERNEL]
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk(shape)
    properties.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (1,))
    group = file[KERNEL.rpartition("/")[0]]
    space = h5py.h5s.create_simple(shape)
    h5py.h5d.create(group.id, b"W_0", h5py.h5t.NATIVE_FLOAT, space, properties)


def _wide_chunk(file: Any, place: Path) -> None:
    shape = file[BIAS].shape
    del file[BIAS]
    file.create_dataset(BIAS, shape, "f4", chunks=(1 << 29,), maxshape=(None,), compression="gzip")


def _cycle(file: Any, place: Path) -> None:
    del file["RNN_0"]
    file.create_group("RNN_0")["RNN"] = file["/"]


def _crowd(file: Any, place: Path) -> None:
    del file[KERNEL]
    for number in range(3_000):
        file.create_group(f"crowd{number}")


def _pipe_link(place: Path) -> Any:
    return h5py.ExternalLink(str(pipe(place.parent / "pipe.h5")), "/")


A_LINK = "is a link; only plain datasets are read"
ELSEWHERE = "are in another file; only plain datasets are read"
register_all(
    "hdf5",
    {
        "an external link to a pipe": (link(_pipe_link), A_LINK),
        "an external link to a file": (
            link(lambda p: h5py.ExternalLink(str(FIXTURES / "bilm-tanh/weights.hdf5"), "RNN_0")),
            A_LINK,
        ),
        "an external link for the other direction": (link(_pipe_link, "RNN_1"), A_LINK),
        "an external link for the projection": (link(_pipe_link, "CNN_proj"), A_LINK),
        "an external link inside": (link(_pipe_link, KERNEL), A_LINK),
        "a soft link": (link(h5py.SoftLink("/RNN_1")), A_LINK),
        "a soft link to itself": (link(h5py.SoftLink("/RNN_0")), A_LINK),
        "external storage": (
            replaced(KERNEL, np.zeros((16, 48), "f4"), external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)]),
            ELSEWHERE,
        ),
        "a virtual dataset": (with_file(_virtual), ELSEWHERE),
        "a filter that is a plugin": (with_file(_foreign_filter), "is stored with HDF5 filter number 32015"),
        "1e300 in float64": (replaced(BIAS, np.full(48, 1e300)), "not finite"),
        "a group inside itself": (with_file(_cycle), "is missing|must be equal"),
        "3,000 other names": (with_file(_crowd), "is missing"),
        "512 GiB that are not stored": (declared((1024, 1024)), OVER_BUDGET),
        "chunks larger than the dataset": (with_file(_wide_chunk), "a chunk of dataset .* would take"),
        "a million chunks": (declared((1, 1), size=512), "is stored in 2,097,152 chunks"),
        "integers": (replaced(BIAS, np.zeros(48, "i4")), "should hold floating-point numbers"),
        "text": (replaced(BIAS, "text"), "should have shape"),
        "a group in place of a dataset": (
            with_file(lambda f, p: (f.__delitem__(BIAS), f.create_group(BIAS))),
            "is missing",
        ),
        "a type in place of a dataset": (
            with_file(lambda f, p: (f.__delitem__(BIAS), f.__setitem__(BIAS, np.dtype("f4")))),
            "is missing",
        ),
        "a dataset in place of a group": (
            with_file(lambda f, p: (f.__delitem__("RNN_0"), f.__setitem__("RNN_0", 1.0))),
            "is missing|must be equal",
        ),
        "an empty dataset": (
            with_file(lambda f, p: (f.__delitem__(BIAS), f.__setitem__(BIAS, h5py.Empty("f4")))),
            "should have shape",
        ),
        "gzip, shuffled, checked": (replaced(KERNEL, compression="gzip", shuffle=True, fletcher32=True), OPENS),
    },
)

LSTM, CNN = (
    (lambda **c: with_options(lambda o: o["lstm"].update(c))),
    (lambda **c: with_options(lambda o: o["char_cnn"].update(c))),
)
register_all(
    "hdf5",
    {
        "options: 10^9 cells": (LSTM(dim=10**9), "cells must be 1 to 131,072"),
        "options: 10^9 layers": (LSTM(n_layers=10**9), "num_layers must be 0 to 100"),
        "options: a width of true": (LSTM(projection_dim=True), "'projection_dim' should be int"),
        "options: a clip of infinity": (LSTM(cell_clip=float("inf")), "cell_clip must be above 0"),
        "options: a clip of 10^400": (LSTM(cell_clip=10**400), "cannot be read|should be float"),
        "options: 2,000,000,000 characters": (CNN(max_characters_per_token=2 * 10**9), "must be 3 to 1,000"),
        "options: 200,000 filters": (CNN(filters=[[1, 1]] * 200_000), "at most 100 widths"),
        "options: filters that are text": (CNN(filters=["x" * 10_000] * 10), "pairs of width and count"),
        "options: 10^6 highways": (CNN(n_highway=10**6), "num_highway must be 0 to 100"),
        "options: an activation that is a list": (CNN(activation=[]), "'activation' should be str"),
        "options: no LSTM": (with_options(lambda o: o.update(lstm=None)), "'lstm' should be dict"),
        "options: a list": (lambda f: written(model(f) / "options.json", "[1]").parent, "is not a model|JSON object"),
        "options: 100,000 brackets": (
            lambda f: written(model(f) / "options.json", '{"lstm":' * 100_000).parent,
            "is not a model that polyseme can open|is not JSON",
        ),
        "options that are a pipe": (lambda f: pipe(model(f) / "options.json").parent, "is not a model|not a plain"),
        "weights that are a pipe": (lambda f: pipe(model(f) / "weights.hdf5").parent, "not a plain|no HDF5 file"),
        "weights that are text": (
            lambda f: written(model(f) / "weights.hdf5", "no").parent,
            "is not a readable HDF5 file",
        ),
    },
)


@hostile("is not a readable HDF5 file|cannot be read")
def a_truncated_file(folder: Path) -> Path:
    place = model(folder)
    whole = (place / "weights.hdf5").read_bytes()
    written(place / "weights.hdf5", whole[: len(whole) // 2])
    return place


def table(folder: Path, rows: int) -> Path:
    path = folder / "vectors.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("embedding", (rows, 4), "f4", chunks=(min(rows, 1 << 16), 4))
    return path


@hostile(OVER_BUDGET)
def token_embeddings_of_2_gib_that_are_not_stored(folder: Path) -> Path:
    written(folder / "vocab.txt", "<S>\n</S>\n<UNK>\n")
    return table(folder, 1 << 27)


@hostile(OVER_BUDGET)
def a_vocabulary_that_unpacks_to_600_mib(folder: Path) -> Path:
    block = gzip.compress(b"a" * (20 << 20), 9)
    written(folder / "vocab.txt.gz", block * 30)
    return table(folder, 5)


@hostile("has 3 words, but the table of vectors has 5 rows")
def token_embeddings_with_too_few_words(folder: Path) -> Path:
    written(folder / "vocab.txt", "<S>\n</S>\n<UNK>\n")
    return table(folder, 5)
