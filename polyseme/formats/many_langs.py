"""ELMoForManyLangs' model format: ``config.json``, an architecture file, two dictionaries and two pickles of tensors.

Its conventions, kept here: begin and end of word are swapped; words are cropped before they are looked up; the forget
gate's bias already includes its 1; the highway's gate multiplies the *carried* half, so it is negated here. Published
folders often name an architecture file on their author's disk; its own code then uses the default that `DEFAULT`
copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from polyseme.errors import FormatError, InputError
from polyseme.formats.budget import check_plain_file, read_model_json
from polyseme.formats.pickles import read_pickled_tensors
from polyseme.formats.stored import StoredModel, check_weights
from polyseme.model.config import PUBLISHED_FILTERS, BiLMConfig, CharCnnConfig, InputConfig, LstmConfig
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_encoder import DictionaryCharacters, WordEncoder

NAME = "ELMoForManyLangs"
LOOKS_FOR = "a folder with encoder.pkl and token_embedder.pkl"
DEFAULT: Mapping[str, Any] = {
    "encoder": {"name": "elmo", "projection_dim": 512, "dim": 4096, "n_layers": 2, "cell_clip": 3, "proj_clip": 3},
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": PUBLISHED_FILTERS,
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}


def recognises(path: Path) -> bool:
    """Whether a path is an ELMoForManyLangs folder, or a file in one."""
    folder = path if path.is_dir() else path.parent
    return (folder / "encoder.pkl").is_file() and (folder / "token_embedder.pkl").is_file()


def load(path: Path) -> StoredModel:
    """Load an ELMoForManyLangs model."""
    folder = path if path.is_dir() else path.parent
    architecture = _architecture(folder)
    embedder = read_pickled_tensors(folder / "token_embedder.pkl")
    encoder = read_pickled_tensors(folder / "encoder.pkl")
    try:
        config = _config(architecture, embedder, folder)
        weights = dict(_translate(config, embedder, encoder))
    except KeyError as error:
        source = "its default architecture" if architecture is DEFAULT else "the architecture file"
        raise FormatError(f"{folder}: {error.args[0]!r}, expected by {source}, is missing") from error
    check_weights(config, weights, str(folder))
    longest = architecture["token_embedder"].get("max_characters_per_token", 50) - 2
    return StoredModel(config, weights, _words(folder, config, longest), f"{NAME} ({folder.name})")


def _architecture(folder: Path) -> Mapping[str, Any]:
    """Architecture file: the one that config.json names, if it is in this folder; else any there; else the default."""
    config = folder / "config.json"
    named = read_model_json(config).get("config_path") if config.is_file() else None
    inside = (folder / str(named)).resolve()
    candidates = [inside] if named and inside.is_relative_to(folder.resolve()) else []
    candidates += [folder / Path(str(named)).name] if named else []
    for file in candidates:
        if file.is_file() and "token_embedder" in (found := read_model_json(file)):
            return found
    others = (file for file in sorted(folder.glob("*.json")) if file.is_file() and file != config)
    return next((found for file in others if "token_embedder" in (found := _settings_in(file))), DEFAULT)


def _settings_in(file: Path) -> Mapping[str, Any]:
    """Settings in a file that happens to be there; none in one that is something else."""
    try:
        return read_model_json(file)
    except FormatError:
        return {}


def _config(architecture: Mapping[str, Any], embedder: Mapping[str, Tensor], folder: Path) -> BiLMConfig:
    token, encoder = architecture["token_embedder"], architecture["encoder"]
    if (token["name"].lower(), encoder["name"].lower()) != ("cnn", "elmo"):
        found = f"{token['name']!r} and {encoder['name']!r}"
        raise FormatError(f"{folder}: only the 'cnn' token embedder with the 'elmo' encoder is supported, not {found}")
    characters = None
    if token["char_dim"] > 0:
        characters = CharCnnConfig(
            num_characters=len(embedder["char_emb_layer.embedding.weight"]),
            dim=token["char_dim"],
            filters=tuple((int(width), int(count)) for width, count in token["filters"]),
            max_characters=token.get("max_characters_per_token", 50),
            activation=token["activation"],
            num_highway=token["n_highway"],
        )
    words = len(embedder["word_emb_layer.embedding.weight"]) if token["word_dim"] > 0 else 0
    dim = encoder["projection_dim"]
    lstm = LstmConfig(
        cells=encoder["dim"],
        dim=dim,
        num_layers=encoder["n_layers"],
        cell_clip=float(encoder.get("cell_clip") or 0) or None,
        output_clip=float(encoder.get("proj_clip") or 0) or None,
        forget_bias=0.0,
    )
    return BiLMConfig(InputConfig(dim, characters, num_words=words, word_dim=token["word_dim"] if words else 0), lstm)


def _translate(
    config: BiLMConfig, embedder: Mapping[str, Tensor], encoder: Mapping[str, Tensor]
) -> Iterator[tuple[str, Tensor]]:
    """Translate their tensor names to ours."""
    ours = "inputs.0"
    if config.input.num_words:
        yield f"{ours}.words.weight", embedder["word_emb_layer.embedding.weight"]
    if characters := config.input.characters:
        yield f"{ours}.characters.embedding.weight", embedder["char_emb_layer.embedding.weight"]
        for i in range(len(characters.filters)):
            for part in ("weight", "bias"):
                yield f"{ours}.characters.convolutions.{i}.{part}", embedder[f"convolutions.{i}.{part}"]
        for i in range(characters.num_highway):
            for part in ("weight", "bias"):
                transform, carried = embedder[f"highways._layers.{i}.{part}"].chunk(2)
                yield f"{ours}.characters.highways.{i}.transform.{part}", transform.contiguous()
                yield f"{ours}.characters.highways.{i}.gate.{part}", -carried
    for part in ("weight", "bias"):
        yield f"{ours}.projection.{part}", embedder[f"projection.{part}"]
    for number, direction in enumerate(config.directions):
        for layer in range(config.lstm.num_layers):
            theirs, name = f"{direction}_layer_{layer}", f"lstms.{number}.{layer}"
            yield f"{name}.input", encoder[f"{theirs}.input_linearity.weight"].t().contiguous()
            yield f"{name}.recurrent", encoder[f"{theirs}.state_linearity.weight"].t().contiguous()
            yield f"{name}.bias", encoder[f"{theirs}.state_linearity.bias"]
            yield f"{name}.projection", encoder[f"{theirs}.state_projection.weight"].t().contiguous()


def _words(folder: Path, config: BiLMConfig, longest: int) -> WordEncoder:
    characters = vocabulary = None
    if config.input.characters:
        entries = _dictionary(folder / "char.dic", config.input.characters.num_characters)
        characters = DictionaryCharacters(entries, config.input.characters.max_characters, swapped=True)
    if config.input.num_words:
        entries = _dictionary(folder / "word.dic", config.input.num_words)
        try:
            vocabulary = Vocabulary(entries, bos="<bos>", eos="<eos>", unk="<oov>")
        except InputError as error:
            raise FormatError(f"{folder / 'word.dic'}: {error}") from error
    return WordEncoder(characters, vocabulary, longest)


def _dictionary(path: Path, rows: int) -> tuple[str, ...]:
    """Read a dictionary: lines of token, tab, id; a line that lost its token (a stripped blank) is U+3000."""
    entries = {}
    check_plain_file(path)
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not (parts := line.strip().split("\t")) or parts == [""]:
            continue
        token, place = ("\u3000", parts[0]) if len(parts) == 1 else (parts[0], parts[-1])
        if not (place.isdecimal() and len(place) < 12) or int(place) >= rows:
            raise FormatError(
                f"{path} line {number}: expected a token, a tab and a number below {rows}; got {line!r:.100}"
            )
        entries[int(place)] = token
    if len(entries) != rows:
        raise FormatError(f"{path} has {len(entries)} entries, but the weights have {rows} rows")
    return tuple(entries[place] for place in range(rows))
