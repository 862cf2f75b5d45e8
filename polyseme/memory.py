"""Memory that can be given back, because it can be read from its file again."""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Callable

from torch import Tensor

WORTH_IT = 1 << 20  # bytes
_PAGE_OUT = 21  # madvise: drop what is unchanged in a file, keep everything else


def give_back(*tensors: Tensor) -> None:
    """Let the system take back what tensors hold of a mapped file; it is read again when it is needed.

    Nothing is lost: memory that was changed, or never came from a file, stays as it is. Where the system cannot do it,
    nothing happens.
    """
    advise = _madvise()
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        if advise is None or tensor.device.type != "cpu" or size < WORTH_IT or not tensor.is_contiguous():
            continue
        page, address = mmap.PAGESIZE, tensor.data_ptr()
        first, end = -(-address // page) * page, (address + size) // page * page
        advise(first, end - first, _PAGE_OUT)


@functools.cache
def _madvise() -> Callable[[int, int, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    function = ctypes.CDLL(None).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function
