"""The model that is looked at, and the folder of labelled sets."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.embedding.encoder import Encoder, hash_weights
from polyseme.errors import ConfigError, PolysemeError
from polyseme.formats import resolve_model_path

if TYPE_CHECKING:
    from polyseme.lm import LanguageModel


class ModelUnderTest:
    """A model: its encoder, who it is, and its language model's head where it has one.

    Args:
        encoder: The model.
        typed: As it was named: its path, or the name of the model that ships. The head is looked for there.
        device: Where to compute.
    """

    def __init__(self, encoder: Encoder, typed: str, device: str = "cpu") -> None:
        self.encoder, self.typed, self._device = encoder, typed, device

    @property
    def elmo(self) -> ElmoEncoder:
        """The encoder, if it is an ELMo; else refused."""
        if not isinstance(self.encoder, ElmoEncoder):
            raise ConfigError("This model is no ELMo, and this is about the inside of one.")
        return self.encoder

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 of settings and weights."""
        return self.encoder.fingerprint()

    @property
    def place(self) -> Path:
        """Where its files are, as far as that is known."""
        return Path(resolve_model_path(self.typed)).expanduser()

    @property
    def bytes(self) -> int | None:
        """What it takes on disk; None where that is not known."""
        place = self.place
        files = place.rglob("*") if place.is_dir() else [place]
        return sum(file.stat().st_size for file in files if file.is_file()) or None

    @cached_property
    def language_model(self) -> LanguageModel:
        """The same model with its head; refused where it has none."""
        from polyseme.lm import LanguageModel

        missing = (
            "This model has no head to predict words with (published files carry none), so it is no language model."
        )
        if not isinstance(self.encoder, ElmoEncoder):
            raise ConfigError(missing)
        try:
            return LanguageModel.load(self.place, device=self._device)
        except (PolysemeError, OSError) as error:
            raise ConfigError(missing) from error

    @cached_property
    def head(self) -> str:
        """A SHA-256 of the head's words and weights; empty where there is none."""
        try:
            model = self.language_model
        except PolysemeError:
            return ""
        digest = hashlib.sha256("\n".join(model.vocabulary).encode("utf-8", "backslashreplace"))
        hash_weights(digest, model.softmax.state_dict())
        return digest.hexdigest()


class EvaluationData:
    """A folder of labelled sets: ``pos-ud-ewt``, ``ner-wnut17``, ``wsd`` and so on; or none at all."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        if folder is not None and not folder.is_dir():
            fault = "is no folder" if folder.exists() else "does not exist"
            raise ConfigError(f"{folder} {fault}; --data takes a folder with labelled sets in it, pos-ud-ewt for one")
        self._hashes: dict[str, str] = {}

    def __getitem__(self, name: str) -> Path:
        if self._folder is None:
            raise ConfigError("Labelled text is needed, and no folder was given (--data DIR).")
        path = self._folder / name
        if not path.exists():
            raise ConfigError(f"The file {name} is needed, and it is not in the folder that was given.")
        return path

    def __contains__(self, name: str) -> bool:
        return self._folder is not None and (self._folder / name).exists()

    def hash(self, name: str) -> str:
        """A SHA-256 of a file, or of all files below a folder with their names."""
        if name not in self._hashes:
            path = self[name]
            digest = hashlib.sha256()
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file():
                    digest.update(file.name.encode() + b"\0" + file.read_bytes())
            self._hashes[name] = digest.hexdigest()
        return self._hashes[name]
