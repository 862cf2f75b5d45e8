"""Safe reading of PyTorch pickles: tensors only, no code, of bounded size.

`torch.load` with ``weights_only`` runs no code, but it allocates what a file declares. So the structure is looked
through first: how much the storages unpack to, and how many instructions the pickle has.
"""

from __future__ import annotations

import pickle
import pickletools
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from polyseme.errors import FormatError
from polyseme.formats.archive import open_zip
from polyseme.formats.budget import Budget, check_plain_file

MAX_INSTRUCTIONS = 200_000  # of a pickle; a model of a hundred tensors has some thousand
_ZIP, _LEGACY = b"PK\x03\x04", b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # how torch's files begin, but for a version
_LEGACY_PICKLES = 5  # magic number, version, system, tensors, names of the storages
_DAMAGE = (
    *(pickle.UnpicklingError, zipfile.BadZipFile, RuntimeError, EOFError, LookupError, TypeError, AttributeError),
    AssertionError,  # of torch, for storages that are not there
)


def read_pickled_tensors(path: Path) -> dict[str, Tensor]:
    """Read a pickled dictionary of tensors as fp32, by name."""
    check_plain_file(path)
    budget = Budget(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in names, which are refused anyway
            _look_through(path)
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except FormatError:
        raise
    except (*_DAMAGE, ValueError, ArithmeticError, OSError) as error:
        raise FormatError(f"{path} is not a plain pickle of tensors, so it is not opened") from error
    if not isinstance(tensors, Mapping) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise FormatError(f"{path} should hold tensors by name, not {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.device.type != "cpu" or not tensor.is_floating_point():
            raise FormatError(f"{path}: {name!r:.100} should be a plain tensor of floating-point numbers")
        budget.take_array(tuple(tensor.shape), tensor.element_size(), f"tensor {name!r:.100}")
    return {str(name): tensor.float() for name, tensor in tensors.items()}


def _look_through(path: Path) -> None:
    """Refuse what is neither of torch's two formats, and what unpacks to too much."""
    with path.open("rb") as file:
        head = file.read(2 + len(_LEGACY))
        file.seek(0)
        if head[2:] == _LEGACY:
            for _ in range(_LEGACY_PICKLES):
                _count_instructions(file, path)
        elif head.startswith(_ZIP):
            archive = open_zip(file)
            Budget(path).take(sum(entry.file_size for entry in archive.infolist()), "what is in it, unpacked,")
            for entry in archive.infolist():
                if entry.filename.endswith("/data.pkl"):
                    with archive.open(entry) as stream:
                        _count_instructions(stream, path)
        else:
            raise FormatError(f"{path} is not a plain pickle of tensors, so it is not opened")


def _count_instructions(file: IO[bytes], path: Path) -> None:
    for count, _ in enumerate(pickletools.genops(file)):
        if count > MAX_INSTRUCTIONS:
            raise FormatError(
                f"{path}: its pickle has over {MAX_INSTRUCTIONS:,} instructions; expected tensors by name"
            )
