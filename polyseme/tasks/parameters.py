"""Parameters of task models: checked settings, typed as NAME=VALUE or set as scikit-learn sets them.

scikit-learn's estimator contract is kept without scikit-learn: `get_params`, `set_params`, clones, tags and the error
of a model that was not fitted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast

import numpy as np

from polyseme.embedding.encoder import Encoder
from polyseme.errors import ConfigError, nearest
from polyseme.model.config import from_dict

PARAMETERS = ("encoder", "words", "settings", "fit_settings", "cache", "device", "verbose")
E = TypeVar("E", bound="Estimator")


def check_choice(settings: object, name: str, known: Sequence[str]) -> None:
    """Refuse a setting whose value is none of the known choices."""
    value = getattr(settings, name)
    if value not in known:
        raise ConfigError(f"{name} must be one of {', '.join(known)}, not {value!r}.{nearest(str(value), known)}")


def check_range(settings: object, name: str, least: float, below: float) -> None:
    """Refuse a setting that is no number within its range."""
    value = getattr(settings, name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < below:
        limit = "" if below == float("inf") else f" and below {below:g}"
        raise ConfigError(f"{name} must be a number of {least:g} or more{limit}; got {value!r}")


def parse_settings(typed: Iterable[str], known: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse settings like ``tagger.mix.l2=0`` to a table for each of the known first names."""
    tables: dict[str, dict[str, Any]] = {name: {} for name in known}
    for setting in typed:
        path, equals, value = setting.partition("=")
        names = path.split(".")
        if not equals or len(names) < 2 or names[0] not in tables:
            begins = " or ".join(f"{name}." for name in known)
            raise ConfigError(f"a setting is typed as NAME=VALUE, its name starting with {begins}; got {setting!r}")
        table: Any = tables
        for name in names[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{setting!r} contradicts a setting before it")
        table[names[-1]] = _value(value)
    return tables


def merged(defaults: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge changes into a table of settings, at any depth."""
    result = dict(defaults)
    for name, value in changes.items():
        before = result.get(name)
        both = isinstance(value, Mapping) and isinstance(before, Mapping)
        result[name] = merged(cast("Mapping[str, Any]", before), value) if both else value
    return result


class NotFittedError(ConfigError, AttributeError):
    """A model was used before `fit` or `load`; scikit-learn's own `NotFittedError` too, once that is imported."""


class Estimator:
    """Parameters by name, as scikit-learn's `clone`, `GridSearchCV` and `cross_val_score` need them.

    The settings are frozen dataclasses; their fields are parameters too, like ``settings__mix__dropout``. Where they
    are None, `get_params` shows the defaults.
    """

    task: ClassVar[str]
    settings_kind: ClassVar[type[Any]]
    default_fit: ClassVar[Any]

    def __new__(cls: type[E], *_: object, **named: object) -> E:
        """Refuse arguments that do not exist, and say where a setting of that name belongs."""
        unknown = next((name for name in named if name not in PARAMETERS), None)
        if unknown is not None:
            known = f"it takes {', '.join(PARAMETERS[:-1])} and {PARAMETERS[-1]}"
            raise ConfigError(f"{cls.__name__} has no argument {unknown!r}; {known}.{cls._where(unknown)}")
        return object.__new__(cls)

    @classmethod
    def _where(cls, name: str) -> str:
        """Where a name belongs that is no parameter: among the settings of the network or of the fit."""
        for parameter, kind in (("settings", cls.settings_kind), ("fit_settings", type(cls.default_fit))):
            if name in {field.name for field in fields(kind)}:
                return f" Give it as {parameter}={kind.__name__}({name}=...), or set_params({parameter}__{name}=...)."
        return nearest(name, PARAMETERS)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name; deep, the fields of the settings too."""
        params = {name: getattr(self, name) for name in PARAMETERS}
        if deep:
            for name in ("settings", "fit_settings"):
                params.update(_nested(name, self._resolved(name)))
        return params

    def set_params(self: E, **params: Any) -> E:  # noqa: ANN401 - parameters of every kind
        """Change parameters by name, the fields of the settings too: ``set_params(settings__dropout=0.3)``."""
        changes: dict[str, Any] = {}
        for path, value in params.items():
            name, *inner = path.split("__")
            if name not in PARAMETERS or (inner and name not in ("settings", "fit_settings")):
                known = nearest(path, self.get_params()) if inner else self._where(path)
                raise ConfigError(f"{path!r} is no parameter of {type(self).__name__}; get_params lists them.{known}")
            if not inner:
                setattr(self, name, value)
                continue
            table = changes
            for part in (name, *inner[:-1]):
                table = table.setdefault(part, {})
            table[inner[-1]] = _plain(value)
        for name, table in changes.items():
            settings = self._resolved(name)
            setattr(self, name, from_dict(type(settings), merged(asdict(settings), table), name))
        return self

    def _resolved(self, name: str) -> Any:  # noqa: ANN401 - settings of either kind
        """The settings under this name, or the defaults where they are None."""
        given = getattr(self, name)
        if given is not None:
            return given
        return self.settings_kind() if name == "settings" else self.default_fit

    @property
    def _estimator_type(self) -> Literal["classifier", "regressor"] | None:
        """scikit-learn's estimator type, classifier or regressor; None for a model that labels sequences."""
        return None

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - a class of scikit-learn
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        kind = self._estimator_type
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if kind == "classifier" else None,
            regressor_tags=RegressorTags() if kind == "regressor" else None,
            input_tags=InputTags(one_d_array=True, two_d_array=False, string=True),
            no_validation=True,
        )

    def __sklearn_clone__(self: E) -> E:
        """A new model with the same parameters; encoders and caches are shared, for copies would cost memory."""
        return type(self)(**self.get_params(deep=False))

    def __repr__(self) -> str:
        default = type(self)()
        given = ((name, getattr(self, name), getattr(default, name)) for name in PARAMETERS)
        shown = ", ".join(f"{name}={_shown(value)}" for name, value, usual in given if value is not usual)
        return f"{type(self).__name__}({shown})"

    if not TYPE_CHECKING:  # attributes stay checked

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            if name.startswith("_") or not name.endswith("_") or "network_" in vars(self):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            theirs = sys.modules.get("sklearn.exceptions")
            bases = (NotFittedError, theirs.NotFittedError) if theirs else (NotFittedError,)
            raise type("NotFittedError", bases, {})(
                f"this {type(self).__name__} is not fitted yet; call fit first, or load a fitted one"
            )


def _nested(prefix: str, settings: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - a dataclass
    for field in fields(settings):
        name, value = f"{prefix}__{field.name}", getattr(settings, field.name)
        yield name, value
        if is_dataclass(value):
            yield from _nested(name, value)


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a grid holds
    """A value as `from_dict` takes it: a Python number instead of numpy's, a table instead of a dataclass."""
    if isinstance(value, np.generic):
        return value.item()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _shown(value: Any) -> str:  # noqa: ANN401 - any parameter
    """A parameter for `repr`: encoders by name, settings by the fields that are not the defaults."""
    if isinstance(value, Encoder):
        return f"<{type(value).__name__} {value.name}>"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    usual = type(value)()
    pairs = ((field.name, getattr(value, field.name), getattr(usual, field.name)) for field in fields(value))
    return f"{type(value).__name__}({', '.join(f'{name}={_shown(own)}' for name, own, other in pairs if own != other)})"


def _value(text: str) -> Any:  # noqa: ANN401 - whatever was typed
    try:
        return json.loads(text)
    except ValueError:
        return text
