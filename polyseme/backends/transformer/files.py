"""Loading transformers from a folder or from Hugging Face's hub; a folder, or a cached model, needs no network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from polyseme.backends.transformer.encoder import TransformerEncoder
from polyseme.backends.transformer.pieces import Pooling
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import FormatError, MissingExtraError, nearest, require
from polyseme.formats import SHIPPED_MODEL
from polyseme.formats.budget import Budget, read_model_json
from polyseme.formats.stored import build_on_meta
from polyseme.formats.tensor_file import check_finite

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_FILES = ("config.json", "model.safetensors", "pytorch_model.bin", "tokenizer.json")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_FILE_SUFFIXES = (".json", ".hdf5", ".h5", ".pkl", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".txt", ".vec", ".bin")
MAX_PARTS, MAX_SIZE = 1_000, 1 << 24  # of a transformer: layers, heads, experts; widths, pieces, positions
_COUNT = re.compile(r"(^|_)(layers?|heads?|experts?|blocks?|stages?)$")
_SIZE = re.compile(r"(size|dim|positions?|embeddings|width|channels?|buckets)$")
_TIMEOUT = 10  # seconds


def is_transformer(path: Path) -> bool:
    """Whether this is a folder that transformers wrote, or the main file of one."""
    folder = path.parent if path.is_file() and path.name in _FILES else path
    try:
        return "model_type" in read_model_json(folder / "config.json")
    except FormatError:
        return False


def is_hub_name(path: str | Path) -> bool:
    """Whether a string that is no path here could be a hub name, like ``google-bert/bert-base-cased``."""
    name = str(path)
    if Path(name).suffix in _FILE_SUFFIXES or not _HUB_NAME.fullmatch(name):
        return False
    return "/" not in name or not Path(name).parent.exists()


def open_transformer(path: str | Path, settings: EmbedSettings, pooling: Pooling = "mean") -> TransformerEncoder:
    """Open an encoder that transformers knows, from a folder or by its name on the hub."""
    place = Path(path).expanduser()
    if place.exists():
        folder = place.parent if place.is_file() else place
        check_sizes(folder)
        return TransformerEncoder(*_open(str(folder), True), settings, folder.resolve().name, pooling)
    name = place.as_posix()
    return TransformerEncoder(*_open(name, _is_fetched(name)), settings, name, pooling)


def check_sizes(folder: Path) -> None:
    """Refuse a folder whose settings ask for far more memory than its weights have, before anything is built."""
    transformers = require("transformers", "transformers")
    for name, value in _numbers(read_model_json(folder / "config.json")):
        if (_COUNT.search(name) and value > MAX_PARTS) or (_SIZE.search(name) and value > MAX_SIZE):
            most = MAX_PARTS if _COUNT.search(name) else MAX_SIZE
            raise FormatError(f"{folder / 'config.json'}: {name} should be at most {most:,}, not {value!s:.30}")
    with _quiet(transformers), _explained(str(folder)):
        config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        model = build_on_meta(lambda: transformers.AutoModel.from_config(config, dtype=torch.float32))
    Budget(folder).take(4 * sum(weight.numel() for weight in model.parameters()), "the model of its config.json")


def _numbers(settings: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif isinstance(value, int):
            yield name, value


@contextmanager
def _explained(source: str) -> Iterator[None]:
    """Turn any error into a FormatError: transformers raises whatever comes from the libraries below it."""
    try:
        yield
    except Exception as error:
        why = " ".join(str(error).split())
        raise FormatError(f"transformers cannot open {source}: {why:.300}") from None


def _open(source: str, offline: bool) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    transformers = require("transformers", "transformers")
    how = {"local_files_only": offline, "trust_remote_code": False}
    with _quiet(transformers), _explained(source):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **how)
        model, report = transformers.AutoModel.from_pretrained(
            source, dtype=torch.float32, output_loading_info=True, **how
        )
    missing = sorted(name for name in report["missing_keys"] if "pooler" not in name.split("."))
    if missing:
        raise FormatError(f"{source} lacks weights, {missing[0]} for one ({len(missing)} in all); copy the model again")
    for name, weight in model.state_dict().items():
        check_finite(weight, f"{source}: {name!r}")
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # it makes one vector of a sentence, which nobody asks for
    return model.get_encoder() if model.config.is_encoder_decoder else model, tokenizer


def _is_fetched(name: str) -> bool:
    """Whether a model of the hub is on this machine already; if not, it must be there to be fetched."""
    meant = nearest(name, [SHIPPED_MODEL])
    try:
        hub = require("huggingface_hub", "transformers")
    except MissingExtraError:
        remedy = f"if it is a model on Hugging Face's hub: pip install 'polyseme[transformers]'.{meant}"
        raise MissingExtraError(f"{name} does not exist here; give the path of a model, or {remedy}") from None
    if isinstance(hub.try_to_load_from_cache(name, "config.json"), str):
        return True
    try:  # once, so that a wrong name is reported at once; the hub's own client tries for half a minute
        answer = hub.get_session().head(f"{hub.constants.ENDPOINT}/{name}/resolve/main/config.json", timeout=_TIMEOUT)
    except Exception:  # which network library the hub uses is its own affair
        raise FormatError(
            f"{name} does not exist here, and Hugging Face's hub, where a model may have that name, cannot be reached; "
            f"give the path of a model.{meant}"
        ) from None
    if answer.status_code >= 400:
        raise FormatError(
            f"{name} does not exist here, nor as an open model on Hugging Face's hub; give another path.{meant}"
        )
    return False


@contextmanager
def _quiet(transformers: object) -> Iterator[None]:
    """No progress bars and no remarks on the terminal; what matters is raised."""
    logging = getattr(transformers, "logging")  # noqa: B009
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
