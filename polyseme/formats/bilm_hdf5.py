"""bilm-tf's and AllenNLP's model format: ``options.json`` and ``weights.hdf5``.

The conventions (TensorFlow's): matrices are used as x·W; one kernel holds the rows for the input above those for the
recurrent output; gates stand in the order input, candidate, forget, output; the forget gate's bias gets 1 added at run
time; the character table has no row for padding. `bilm_table.entries` is the table of names; it converts both ways, bit
for bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from polyseme.errors import ConfigError, FormatError, require
from polyseme.files import atomic_write, check_absent, make_folder
from polyseme.formats.bilm_table import TensorEntry, entries
from polyseme.formats.budget import Budget, check_unpacked_size, read_model_json
from polyseme.formats.hdf5 import find_dataset, find_object, open_hdf5, read_dataset
from polyseme.formats.stored import StoredModel, check_finite
from polyseme.model.config import BiLMConfig, CharCnnConfig, Direction, InputConfig, LstmConfig
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_encoder import ByteCharacters, WordEncoder

if TYPE_CHECKING:
    import h5py

NAME = "bilm-tf / AllenNLP"
LOOKS_FOR = "options.json with weights.hdf5 beside it"
SUFFIXES = (".hdf5", ".h5")


def recognises(path: Path) -> bool:
    """Whether a path is a bilm-tf options file, a weight file, or a folder with both."""
    if path.is_dir():
        return any(map(_is_options, path.glob("*.json"))) and any(path.glob("*.h*5"))
    return path.suffix in SUFFIXES or (path.suffix == ".json" and _is_options(path))


def load(path: Path, vocabulary: Path | None = None) -> StoredModel:
    """Load a bilm-tf model from either of its two files, or from their folder.

    A file that holds nothing but the table ``embedding`` (bilm-tf's dump of context-free vectors) is read together with
    the LSTM weights beside it, and by itself, as one layer, when there are none.
    """
    named = path if path.suffix in SUFFIXES and path.is_file() else None
    weights = _find_weights(path)
    if weights is None and named is None:
        raise FormatError(f"{path}: no HDF5 file with LSTM weights (a group 'RNN_0') is beside the options")
    embedding = named if named not in (None, weights) else None
    if weights is None:
        return _load_embedding(path, vocabulary)
    options_path = path if path.suffix == ".json" else _find_options(weights)
    with open_hdf5(weights) as file:
        config = _config(read_model_json(options_path), file, str(options_path))
        if embedding:
            config = _with_table(config, embedding)
        tensors = _read_weights(config, file, embedding)
    words = _words(config, weights.parent, vocabulary)
    return StoredModel(config, tensors, words, f"{NAME} ({weights.name})")


def save(model: StoredModel, path: Path, overwrite: bool = False) -> None:
    """Save a model as bilm-tf and AllenNLP read it: ``path`` (.hdf5), and the options beside it."""
    characters = model.words.characters
    if model.config.separate_inputs or (characters and not isinstance(characters, ByteCharacters)):
        raise ConfigError("bilm-tf's format allows only byte characters and one word encoder; this model has others")
    if model.config.directions == ("backward",):
        raise ConfigError("bilm-tf's format cannot hold a model that only reads backward")
    if model.config.lstm.forget_bias != 1:
        raise ConfigError(f"bilm-tf adds 1 to the forget gate's bias; this model adds {model.config.lstm.forget_bias}")
    h5py = require("h5py", "hdf5")
    options = options_path(path)
    vocabulary = [path.with_name("vocab.txt")] if model.words.vocabulary else []
    for file in (path, options, *vocabulary):
        check_absent(file, overwrite)
    make_folder(path.parent)
    with atomic_write(options) as file:
        file.write((json.dumps(_options(model.config)) + "\n").encode())
    with atomic_write(path) as disk, h5py.File(disk, "w") as file:
        for entry in entries(model.config):
            file[entry.theirs] = entry.join(*(model.weights[name].numpy() for name in entry.ours))
    if model.words.vocabulary:
        model.words.vocabulary.save(*vocabulary)


def options_path(weights: Path) -> Path:
    """Options file of a weight file by its name: ``x_weights.hdf5`` has ``x_options.json``."""
    stem = weights.stem
    if "weights" in stem:
        return weights.with_name(f"{stem.replace('weights', 'options')}.json")
    return weights.with_name(f"{stem}.json")


def _is_options(path: Path) -> bool:
    try:
        return "lstm" in read_model_json(path)
    except FormatError:
        return False


def _find_options(weights: Path) -> Path:
    usual = [options_path(weights), weights.with_name("options.json")]
    found = [path for path in usual if path.is_file()] or list(
        filter(_is_options, sorted(weights.parent.glob("*.json")))
    )
    if not found:
        names = " or ".join(dict.fromkeys(path.name for path in usual))
        raise FormatError(f"{weights} needs its options beside it; there is no {names}")
    if len(found) > 1 and not usual[0].is_file() and not usual[1].is_file():
        raise FormatError(
            f"{weights}: several options files might belong to it: {', '.join(path.name for path in found)}"
        )
    return found[0]


def _find_weights(path: Path) -> Path | None:
    """Find the LSTM weight file for an options file, a weight file, a table of vectors, or a folder."""
    if path.suffix in SUFFIXES and path.is_file() and _has_lstm(path):
        return path
    folder = path if path.is_dir() else path.parent
    found = [file for file in sorted(folder.iterdir()) if file.suffix in SUFFIXES and _may_have_lstm(file)]
    if path.suffix == ".json":
        found = [file for file in found if options_path(file).name == path.name] or found
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise FormatError(f"{path}: several files hold LSTM weights ({names}); give the path of one of them")
    return found[0] if found else None


def _may_have_lstm(path: Path) -> bool:
    """Whether a file beside the given one holds LSTM weights; an unreadable one counts only if there is no other."""
    try:
        return _has_lstm(path)
    except FormatError:
        return len(list(path.parent.glob("*.h*5"))) == 1


def _has_lstm(path: Path) -> bool:
    with open_hdf5(path) as file:
        return find_object(file, "RNN_0") is not None or find_object(file, "rnn") is not None


def _config(options: Mapping[str, Any], file: h5py.File, where: str) -> BiLMConfig:
    lstm, inside = _need(options, "lstm", dict, where), f"{where}: lstm"
    dim = _need(lstm, "projection_dim", int, inside)
    directions: tuple[Direction, ...] = ("forward",)
    if find_object(file, "RNN_1") is not None:
        directions = ("forward", "backward")
    recurrent = LstmConfig(
        cells=_need(lstm, "dim", int, inside),
        dim=dim,
        num_layers=_get(lstm, "n_layers", int, 1, inside),
        projected=_lstm_name(file, 0, 0, "W_P_0", "projection/kernel") is not None,
        residual=bool(lstm.get("use_skip_connections")),
        cell_clip=_get(lstm, "cell_clip", float, 0.0, inside) or None,
        output_clip=_get(lstm, "proj_clip", float, 0.0, inside) or None,
    )
    return BiLMConfig(_input_config(options, dim, file, where), recurrent, directions)


def _input_config(options: Mapping[str, Any], dim: int, file: h5py.File, where: str) -> InputConfig:
    cnn = options.get("char_cnn")
    if cnn is None:
        rows, width = _table_shape(file)
        return InputConfig(dim, None, num_words=rows, word_dim=width, projected=False)
    cnn, where = _need(options, "char_cnn", dict, where), f"{where}: char_cnn"
    filters = _need(cnn, "filters", list, where)
    if not all(isinstance(pair, list) and [type(number) for number in pair] == [int, int] for pair in filters):
        raise FormatError(f"{where}: 'filters' should be pairs of width and count, not {filters!r:.100}")
    characters = CharCnnConfig(
        dim=_need(_need(cnn, "embedding", dict, where), "dim", int, f"{where}: embedding"),
        filters=tuple((width, count) for width, count in filters),
        max_characters=_get(cnn, "max_characters_per_token", int, 50, where),
        activation=_get(cnn, "activation", str, "relu", where),
        num_highway=_get(cnn, "n_highway", int, 0, where),
    )
    return InputConfig(dim, characters, projected=find_object(file, "CNN_proj") is not None)


def _with_table(config: BiLMConfig, embedding: Path) -> BiLMConfig:
    """Configuration of the same LSTM over a table of precomputed word vectors instead of characters."""
    with open_hdf5(embedding) as file:
        rows, width = _table_shape(file)
    table = InputConfig(config.input.dim, None, num_words=rows, word_dim=width, projected=False)
    return BiLMConfig(table, config.lstm, config.directions)


def _load_embedding(path: Path, vocabulary: Path | None) -> StoredModel:
    with open_hdf5(path) as file:
        rows, dim = _table_shape(file)
        config = BiLMConfig(
            InputConfig(dim, None, num_words=rows, word_dim=dim, projected=False),
            LstmConfig(dim, dim, num_layers=0, projected=False),
            directions=("forward",),
        )
        tensors = _read_weights(config, file, None)
    return StoredModel(
        config, tensors, _words(config, path.parent, vocabulary), f"{NAME} token embeddings ({path.name})"
    )


def _table_shape(file: h5py.File) -> tuple[int, int]:
    table = find_dataset(file, "embedding")
    if table is None or len(table.shape) != 2:
        raise FormatError(f"{file.filename} holds neither LSTM weights nor a table 'embedding' of (words, dim)")
    return table.shape


def _words(config: BiLMConfig, folder: Path, vocabulary: Path | None) -> WordEncoder:
    if config.input.characters:
        limit = config.input.characters.max_characters
        return WordEncoder(ByteCharacters(limit, whole_characters=False, literal_boundaries=True))
    found = [vocabulary] if vocabulary else sorted([*folder.glob("vocab*.txt"), *folder.glob("vocab*.txt.gz")])
    if not found:
        raise FormatError(f"{folder}: a model that reads word ids needs its vocabulary, vocab.txt, beside it")
    check_unpacked_size(found[0])
    words = Vocabulary.load(found[0])
    if len(words) != config.input.num_words:
        raise FormatError(
            f"{found[0]} has {len(words)} words, but the table of vectors has {config.input.num_words} rows"
        )
    return WordEncoder(vocabulary=words)


def _read_weights(config: BiLMConfig, file: h5py.File, embedding: Path | None) -> dict[str, torch.Tensor]:
    """Read all tensors; the table of word vectors comes from its own file, where one is given."""
    weights: dict[str, torch.Tensor] = {}
    budget = Budget(Path(file.filename))
    for entry in entries(config):
        if entry.theirs == "embedding" and embedding:
            with open_hdf5(embedding) as table:
                weights.update(_read_entry(table, entry, Budget(embedding)))
        else:
            weights.update(_read_entry(file, entry, budget))
    return weights


def _read_entry(file: h5py.File, entry: TensorEntry, budget: Budget) -> Iterator[tuple[str, torch.Tensor]]:
    shapes = [entry.shape]
    if entry.theirs == "char_embed":  # some dumps have a row for padding before the others
        shapes.append((entry.shape[0] + 1, entry.shape[1]))
    theirs = _actual_name(file, entry.theirs)
    with np.errstate(over="ignore"):  # infinity is refused below
        array = read_dataset(file, theirs, shapes, budget).astype(np.float32, copy=False)[-entry.shape[0] :]
    check_finite(torch.from_numpy(array), f"{file.filename}: dataset {theirs!r}")
    for name, part in zip(entry.ours, entry.split(array), strict=True):
        yield name, torch.from_numpy(np.ascontiguousarray(part))


def _actual_name(file: h5py.File, name: str) -> str:
    """Name of a tensor in this file: models of one layer or direction lack some levels, and use TensorFlow's names."""
    if not name.startswith("RNN_"):
        return name
    scope, _, _, cell, _, tensor = name.split("/")
    plain = {"W_0": "kernel", "B": "bias", "W_P_0": "projection/kernel"}[tensor]
    layer, direction = int(cell.removeprefix("Cell")), int(scope.removeprefix("RNN_"))
    return _lstm_name(file, direction, layer, tensor, plain) or name


def _lstm_name(file: h5py.File, direction: int, layer: int, *tensors: str) -> str | None:
    roots = [f"RNN_{direction}/RNN", *(["rnn"] if direction == 0 else [])]
    levels = [f"MultiRNNCell/Cell{layer}/LSTMCell", *(["LSTMCell"] if layer == 0 else [])]
    names = (f"{root}/{level}/{tensor}" for root in roots for level in levels for tensor in tensors)
    return next((name for name in names if find_object(file, name) is not None), None)


def _options(config: BiLMConfig) -> dict[str, Any]:
    """Options as bilm-tf's and AllenNLP's loaders expect them."""
    lstm, characters = config.lstm, config.input.characters
    options: dict[str, Any] = {
        "lstm": {
            "dim": lstm.cells,
            "projection_dim": lstm.dim,
            "n_layers": lstm.num_layers,
            "cell_clip": lstm.cell_clip,
            "proj_clip": lstm.output_clip,
            "use_skip_connections": lstm.residual,
        }
    }
    if characters:
        options["char_cnn"] = {
            "activation": characters.activation,
            "embedding": {"dim": characters.dim},
            "filters": [list(pair) for pair in characters.filters],
            "max_characters_per_token": characters.max_characters,
            "n_characters": 262,
            "n_highway": characters.num_highway,
        }
    return options


def _need(values: Mapping[str, Any], key: str, kind: type, where: str) -> Any:  # noqa: ANN401
    if key not in values:
        raise FormatError(f"{where}: {key!r} is missing")
    return _get(values, key, kind, None, where)


def _get(values: Mapping[str, Any], key: str, kind: type, default: object, where: str) -> Any:  # noqa: ANN401
    """Value of a given type; an integer is accepted as float, and null counts as missing."""
    value = values.get(key)
    if value is None and default is not None:
        return default
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise FormatError(f"{where}: {key!r} should be {kind.__name__}, not {value!r}")
    return value
