"""Hostile files of static vectors: counts that lie, bombs, and NumPy headers."""

import gzip
import lzma
import struct
from pathlib import Path

import numpy as np

from hostile_models.case import OPENS, OVER_BUDGET, Make, hostile, register_all, sparse, written

MIB = 1 << 20
ENTRY = b"word " + struct.pack("<4f", 1, 2, 3, 4) + b"\n"


def file(name: str, content: bytes) -> Make:
    return lambda folder: written(folder / name, content)


def numpy(header: str, data: bytes = bytes(64), length: int | None = None) -> Make:
    def make(folder: Path) -> Path:
        encoded = header.encode()
        size = struct.pack("<H", len(encoded) if length is None else length)
        written(folder / "vocab.txt", "a\nb\nc\nd\n")
        return written(folder / "vectors.npy", b"\x93NUMPY\1\0" + size + encoded + data)

    return make


NOT_NUMPY = r"cannot be read as NumPy's \.npy"
register_all(
    "vectors",
    {
        "word2vec with 10^11 words": (
            file("v.bin", b"100000000000 4\n" + ENTRY * 3),
            "ends in the middle of word number 4",
        ),
        "word2vec with 131,072 dimensions": (file("v.bin", b"2 131072\n" + ENTRY), "ends in the middle|is not a model"),
        "word2vec with 999,999 dimensions": (file("v.bin", b"2 999999\n" + ENTRY), "is not a model"),
        "word2vec with no words": (file("v.bin", b"0 4\n" + ENTRY), "is not a model"),
        "word2vec with more words than promised": (file("v.bin", b"2 4\n" + ENTRY * 3), "continues after the 2 words"),
        "word2vec with a word that never ends": (file("v.bin", b"2 4\n" + b"\1" * (1 << 20)), "no word where number 1"),
        "word2vec with NaN": (file("v.bin", b"1 4\nw " + struct.pack("<4f", 1, np.nan, 1, 1)), "not finite"),
        "fastText's model": (file("v.bin", struct.pack("<ii", 793712314, 12) + bytes(1000)), "is not a model"),
        "text with 1e39": (file("v.txt", b"a 1 2 1e39\nb 1 2 3\n"), "not finite"),
        "text with a number of 5,000 digits": (file("v.txt", b"a 1 2 " + b"9" * 5000 + b"\nb 1 2 3\n"), "not finite"),
        "text with a line of 70 MB": (file("v.txt", b"a 1 2 3\nb" + b"x" * (70 * 10**6)), "line 2 has over"),
        "nothing but zeros": (file("v.txt", bytes(5000)), "is not a word vector|line 1"),
        "an empty file": (file("v.vec", b""), "is empty"),
        "a gzip cut off": (file("v.txt.gz", gzip.compress(b"a 1 2 3\n" * 99)[:-9]), "ends too early"),
        "a line of 4 GiB, packed": (
            lambda f: written(f / "v.txt.gz", gzip.compress(b"a" * (32 * MIB), 9) * 128),
            "line 1",
        ),
        "NumPy: 10^12 rows": (numpy("{'descr':'<f4','fortran_order':False,'shape':(1000000000000,4)}\n"), NOT_NUMPY),
        "NumPy: a negative shape": (
            numpy("{'descr':'<f4','fortran_order':False,'shape':(-4,4)}\n"),
            f"{NOT_NUMPY}|matrix",
        ),
        "NumPy: objects": (
            numpy("{'descr':'|O','fortran_order':False,'shape':(4,4)}\n"),
            f"{NOT_NUMPY}|matrix of floats",
        ),
        "NumPy: a header that is code": (numpy("__import__('os').system('true')\n"), NOT_NUMPY),
        "NumPy: a header of 60,000 bytes": (numpy("(" * 60_000), NOT_NUMPY),
        "NumPy: a header beyond the end": (numpy("{}", b"", 60_000), NOT_NUMPY),
        "NumPy: a structure": (
            numpy("{'descr':[('a','<f4')],'fortran_order':False,'shape':(4,)}\n"),
            "matrix of floats",
        ),
        "NumPy: 1e300": (
            numpy("{'descr':'<f8','fortran_order':False,'shape':(4,2)}\n", np.full(8, 1e300).tobytes()),
            "not finite",
        ),
        "NumPy: float16 in Fortran's order": (
            numpy("{'descr':'<f2','fortran_order':True,'shape':(4,2)}\n", bytes(16)),
            OPENS,
        ),
    },
)


@hostile("line 1|would take")
def a_zstd_bomb_of_4_gib(folder: Path) -> Path:
    """One frame of blocks of 4 bytes, each of which repeats a byte 128 Ki times: 128 kB in all."""
    block = struct.pack("<I", (128 << 10) << 3 | 1 << 1)[:3] + b"a"
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + block * 32_000 + b"\x01\0\0"
    return written(folder / "v.txt.zst", frame)


@hostile("line 1|would take")
def an_xz_bomb(folder: Path) -> Path:
    block = lzma.compress(b"a" * (64 * MIB), preset=0)
    return written(folder / "v.txt.xz", block * 20)


@hostile(OVER_BUDGET)
def a_gzip_of_the_same_line(folder: Path) -> Path:
    lines = b"a" + b" 0" * 100_000 + b"\n"
    return written(folder / "v.txt.gz", gzip.compress(lines * 100, 9) * 60)


@hostile(f"{NOT_NUMPY}|have 100,000,000,000 dimensions")
def a_matrix_with_holes(folder: Path) -> Path:
    header = "{'descr':'<f4','fortran_order':False,'shape':(4,100000000000)}\n"
    path = numpy(header, b"")(folder)
    return sparse(path, path.stat().st_size + 16 * 10**11)
