"""What measurements work on: the model under test, and the folder of labelled evaluation data."""

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

BUNDLED = Path(__file__).parent.parent / "data"


class ModelUnderTest:
    """A model that the report is about: its encoder, and its language-model head if it has one.

    Args:
        encoder: The model.
        typed: The model as the user named it: its path, or the name of the shipped one. The head is looked for there.
        device: The device to compute on.
    """

    def __init__(self, encoder: Encoder, typed: str, device: str = "cpu") -> None:
        self.encoder, self.typed, self._device = encoder, typed, device

    @property
    def elmo(self) -> ElmoEncoder:
        """The encoder if it is an ELMo model; any other is an error."""
        if not isinstance(self.encoder, ElmoEncoder):
            raise ConfigError("This model is not an ELMo model, and this measurement looks inside one.")
        return self.encoder

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 fingerprint of the model's settings and weights."""
        return self.encoder.fingerprint()

    @property
    def path(self) -> Path:
        """The path of the model's files, as far as it is known."""
        return Path(resolve_model_path(self.typed)).expanduser()

    @property
    def bytes(self) -> int | None:
        """Size of the model on disk in bytes; None if that is unknown."""
        files = self.path.rglob("*") if self.path.is_dir() else [self.path]
        return sum(file.stat().st_size for file in files if file.is_file()) or None

    @cached_property
    def language_model(self) -> LanguageModel:
        """The model with its language-model head; an error if it has none."""
        from polyseme.lm import LanguageModel

        missing = (
            "This model has no language-model head (published ELMo files come without one), so it cannot predict words."
        )
        if not isinstance(self.encoder, ElmoEncoder):
            raise ConfigError(missing)
        try:
            return LanguageModel.load(self.path, device=self._device)
        except (PolysemeError, OSError) as error:
            raise ConfigError(missing) from error

    @cached_property
    def head(self) -> str:
        """SHA-256 of the language-model head's words and weights; empty if there is no head."""
        try:
            model = self.language_model
        except PolysemeError:
            return ""
        digest = hashlib.sha256("\n".join(model.vocabulary).encode("utf-8", "backslashreplace"))
        hash_weights(digest, model.softmax.state_dict())
        return digest.hexdigest()


class EvaluationData:
    """Labelled data sets (``pos-ud-ewt``, ``wsd`` and so on): those of a folder, and for the rest the bundled samples.

    A set that the folder has is taken from there, whole; `polyseme/report/data/README.md` describes the bundled ones.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        if folder is not None and not folder.is_dir():
            fault = "is not a folder" if folder.exists() else "does not exist"
            raise ConfigError(f"{folder} {fault}; --data takes a folder of labelled data sets, such as pos-ud-ewt")
        self._hashes: dict[str, str] = {}

    def __getitem__(self, name: str) -> Path:
        path = self._find(name)
        if path is not None:
            return path
        if self._folder is None:
            raise ConfigError("This needs labelled text that is not bundled; give a folder with it (--data DIR).")
        raise ConfigError(f"This needs {name}, which is not in the data folder.")

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def in_folder(self, name: str) -> bool:
        """Whether the user's folder has this file or data set."""
        return self._folder is not None and (self._folder / name).exists()

    def hash(self, name: str) -> str:
        """SHA-256 of a file, or of all files below a folder with their names."""
        if name not in self._hashes:
            path = self[name]
            digest = hashlib.sha256()
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file():
                    digest.update(file.name.encode() + b"\0" + file.read_bytes())
            self._hashes[name] = digest.hexdigest()
        return self._hashes[name]

    def _find(self, name: str) -> Path | None:
        if self._folder is not None and self.in_folder(name.partition("/")[0]):
            candidates = [self._folder / name]
        else:
            candidates = [BUNDLED / name, BUNDLED / f"{name}.xz"]
        return next((path for path in candidates if path.exists()), None)
