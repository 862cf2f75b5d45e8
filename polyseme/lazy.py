"""Lazy imports of a package's public names (PEP 562), so that importing the package does not wait for torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that imports each name on first use, from the module it lives in.

    Args:
        package: The package's ``__name__``.
        homes: For each public name the module that defines it, as ``"polyseme.lm"``.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return get, lambda: sorted(sys.modules[package].__all__)
