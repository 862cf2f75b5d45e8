"""Hostile archives: bombs, headers without end, names that point outside, links and devices."""

import bz2
import functools
import gzip
import io
import lzma
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from hostile_models.case import OPENS, OVER_BUDGET, Make, hostile, register_all, written
from hostile_models.hdf5 import FIXTURES

MIB = 1 << 20
GOOD = FIXTURES / "bilm-relu"
OUTSIDE, NO_FILE = "points outside the archive; it is not opened", "is a link or a device, not a plain file"
LONG_HEADER = "cannot be unpacked: a header of over 1 MiB"


def header(name: str = "x", size: int = 0, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type, entry.linkname = size, kind, link
    return entry.tobuf(tarfile.GNU_FORMAT)


def packed(*parts: bytes, blank: int = 0, fill: bytes = b" ") -> bytes:
    """A gzip of some bytes and then of very many equal ones: members of a gzip may follow each other."""
    return gzip.compress(b"".join(parts)) + _blank(fill) * (blank // (32 * MIB))


@functools.cache
def _blank(fill: bytes) -> bytes:
    return gzip.compress(fill * (32 * MIB), 9)


def tar(content: bytes, name: str = "model.tar") -> Make:
    return lambda folder: written(folder / name, content + bytes(1024))


def zipped(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return out.getvalue()


def zip_file(content: bytes) -> Make:
    return lambda folder: written(folder / "model.zip", content)


def patched(content: bytes, old: bytes, new: bytes) -> bytes:
    assert old in content
    return content.replace(old, new)


def _encrypted() -> bytes:
    content = zipped(("x", b""))
    for start in (b"PK\1\2\x14\x03\x14\0", b"PK\3\4\x14\0"):
        content = patched(content, start + b"\0\0", start + b"\1\0")
    return content


PAX = header("pax", 3 << 30, tarfile.XHDTYPE)
register_all(
    "archives",
    {
        "a pax header of 3 GiB": (lambda f: written(f / "m.tar.gz", packed(PAX, blank=3 << 30)), LONG_HEADER),
        "a global pax header of 3 GiB": (
            lambda f: written(f / "m.tar.gz", packed(header("g", 3 << 30, tarfile.XGLTYPE), blank=3 << 30)),
            LONG_HEADER,
        ),
        "a name of 3 GiB": (
            lambda f: written(f / "m.tar.gz", packed(header("n", 3 << 30, tarfile.GNUTYPE_LONGNAME), blank=3 << 30)),
            LONG_HEADER,
        ),
        "a link of 3 GiB": (
            lambda f: written(f / "m.tar.gz", packed(header("n", 3 << 30, tarfile.GNUTYPE_LONGLINK), blank=3 << 30)),
            LONG_HEADER,
        ),
        "5,000 headers before a file": (
            tar((header("p", 0, tarfile.XHDTYPE)) * 5_000 + header()),
            "cannot be unpacked",
        ),
        "a file of 3 GiB": (
            lambda f: written(f / "m.tar.gz", packed(header("weights.hdf5", 3 << 30), blank=3 << 30)),
            OVER_BUDGET,
        ),
        "a file of 8 EiB": (tar(header("weights.hdf5", (1 << 63) - 1)), OVER_BUDGET),
        "a file of negative size": (tar(header("weights.hdf5", -1)), "cannot be unpacked|is not a model"),
        "a truncated file": (tar(header("weights.hdf5", 10_000)), "cannot be unpacked"),
        "10,000 folders": (tar(header("d", 0, tarfile.DIRTYPE) * 10_000), "more than 1,000 files"),
        "10,000 files": (tar(header("f") * 10_000), "more than 1,000 files"),
        "a path outside": (tar(header("../../x")), OUTSIDE),
        "an absolute path": (tar(header("/tmp/x")), OUTSIDE),
        "a path of Windows": (tar(header("..\\x")), OUTSIDE),
        "a soft link": (tar(header("weights.hdf5", 0, tarfile.SYMTYPE, "/etc/passwd")), NO_FILE),
        "a hard link": (tar(header("weights.hdf5", 0, tarfile.LNKTYPE, "../x")), NO_FILE),
        "a pipe": (tar(header("weights.hdf5", 0, tarfile.FIFOTYPE)), NO_FILE),
        "a device": (tar(header("weights.hdf5", 0, tarfile.CHRTYPE)), NO_FILE),
        "a kind that nobody knows": (tar(header("weights.hdf5", 0, b"Z")), NO_FILE),
        "40 folders deep": (tar(header("a/" * 40 + "x")), "lies over 16 folders deep"),
        "a file that is a folder too": (tar(header("a") + header("a/b")), "cannot be unpacked"),
        "a name that is a dot": (tar(header(".")), "cannot be unpacked"),
        "a name of 300 characters": (tar(header("x" * 300)), "cannot be unpacked"),
        "a gzip cut off": (
            lambda f: written(f / "m.tar.gz", gzip.compress(header("x", 9999))[:-4]),
            "cannot be unp|is not a model",
        ),
        "a zip of zips": (zip_file(zipped(("a.zip", zipped(("b", b""))))), "is not a model"),
        "a zip with a path outside": (zip_file(zipped(("../x", b""))), OUTSIDE),
        "a zip with an absolute path": (zip_file(zipped(("/x", b""))), OUTSIDE),
        "a zip with a name of 60,000 characters": (zip_file(zipped(("x" * 60_000, b""))), "cannot be unpacked"),
        "a zip that is encrypted": (zip_file(_encrypted()), "cannot be unpacked: .*encrypted"),
        "a zip of an unknown method": (
            zip_file(patched(zipped(("x", b"abc")), b"\x14\0\0\0\x08\0", b"\x14\0\0\0\x63\0")),
            "cannot be unpacked",
        ),
        "a zip without its end": (zip_file(zipped(("x", b"abc" * 99))[:-30]), "is not a model"),
        "a zip of 2,000 files": (zip_file(zipped(*((f"{n}", b"") for n in range(2_000)))), "more than 1,000 files"),
        "a zip whose list is 2 MiB": (zip_file(zipped(*((f"{n:0>1000}", b"") for n in range(2_000)))), LONG_HEADER),
        "a zip with one file 500 times": (lambda f: written(f / "m.zip", _repeated(8 * MIB, 500)), OVER_BUDGET),
        "a zip of zeros": (lambda f: written(f / "m.zip", zipped(("weights.hdf5", bytes(64 * MIB)))), "is not a model"),
        "a bzip2 bomb in a zip": (lambda f: written(f / "m.zip", _lying(bz2.compress(bytes(MIB)), 12)), OVER_BUDGET),
        "an xz of a huge dictionary": (
            lambda f: written(f / "m.tar.xz", _xz_dictionary()),
            "is not a model|cannot be unp",
        ),
        "not an archive": (lambda f: written(f / "m.tar.gz", b"\x1f\x8b" + b"\xff" * 600), "is not a model"),
    },
)


def _repeated(size: int, times: int) -> bytes:
    """A zip that lists one file many times: all of them lie at the same place."""
    whole = bytearray(zipped(("0000", bytes(size))))
    start = whole.index(b"PK\1\2")
    end = whole.index(b"PK\5\6")
    entry = bytes(whole[start:end])
    listed = entry * times
    tail = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, times, times, len(listed), start, 0)
    return bytes(whole[:start]) + listed + tail


def _lying(data: bytes, method: int, declared: int = 600 * MIB) -> bytes:
    name = b"weights.hdf5"
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 46, 0, method, 0, 0, 0, len(data), declared, len(name), 0) + name
    listed = struct.pack(
        "<4sHHHHHHIIIHHHHHII", b"PK\1\2", 46, 46, 0, method, 0, 0, 0, len(data), declared, len(name), 0, 0, 0, 0, 0, 0
    )
    start = len(local) + len(data)
    tail = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, len(listed) + len(name), start, 0)
    return local + data + listed + name + tail


def _xz_dictionary() -> bytes:
    """An .xz of a tar whose header asks the reader for a dictionary of 1.5 GiB."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 16}]
    content = bytearray(lzma.compress(header("x") + bytes(1024), lzma.FORMAT_XZ, lzma.CHECK_NONE, filters=filters))
    at = content.index(b"\x21\x01", 12) + 2
    content[at] = 39  # 3 << 30
    block_end = 12 + (content[12] + 1) * 4
    content[block_end - 4 : block_end] = struct.pack("<I", zlib.crc32(bytes(content[12 : block_end - 4])))
    return bytes(content)


@hostile("cannot be unpacked")
def a_sparse_file_with_endless_headers(folder: Path) -> Path:
    first = bytearray(header("weights.hdf5", 0, tarfile.GNUTYPE_SPARSE))
    first[482] = 1  # another header of pieces follows
    more = bytearray(512)
    for number in range(21):
        more[24 * number : 24 * number + 24] = b"00000000001\0" * 2
    more[504] = 1
    first[148:156] = b"        "
    first[148:156] = f"{sum(first):06o}\0 ".encode()
    block = gzip.compress(bytes(more) * 40_000)
    return written(folder / "model.tar.gz", gzip.compress(bytes(first)) + block * 20)


@hostile(OVER_BUDGET)
def a_sparse_file_of_a_tebibyte(folder: Path) -> Path:
    fields = "GNU.sparse.major=1\nGNU.sparse.minor=0\nGNU.sparse.name=weights.hdf5\nGNU.sparse.realsize=1099511627776\n"
    lines = b"".join(_record(line) for line in fields.splitlines())
    pax = header("p", len(lines), tarfile.XHDTYPE) + lines.ljust(-(-len(lines) // 512) * 512, b"\0")
    return written(folder / "model.tar", pax + header("s", 512) + b"0\n".ljust(512, b"\0") + bytes(1024))


def _record(field: str) -> bytes:
    length = len(field) + 3
    while len(f"{length} {field}\n") != length:
        length += 1
    return f"{length} {field}\n".encode()


@hostile(OPENS)
def a_zip_with_the_same_files_twice(folder: Path) -> Path:
    files = [(file.name, file.read_bytes()) for file in GOOD.iterdir()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return written(folder / "model.zip", zipped(*files, *files))


def _all_files() -> Iterable[tuple[str, bytes]]:
    return [(f"a/b/{file.name}", file.read_bytes()) for file in GOOD.iterdir() if file.is_file()]


for _name, _method in (("bzip2", zipfile.ZIP_BZIP2), ("lzma", zipfile.ZIP_LZMA), ("nothing", zipfile.ZIP_STORED)):
    register_all(
        "archives",
        {
            f"a zip packed with {_name}": (
                lambda f, m=_method: written(f / "m.zip", zipped(*_all_files(), method=m)),
                OPENS,
            )
        },
    )


@hostile(OVER_BUDGET, slow=True)
def a_tar_that_unpacks_to_20_gib(folder: Path) -> Path:
    return written(folder / "m.tar.gz", packed(header("weights.hdf5", 20 << 30), blank=20 << 30))
