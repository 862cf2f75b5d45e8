"""Hostile ELMoForManyLangs models: pickles with code or with tensors that take no room, and dictionaries that lie."""

import json
import os
import pickle
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from many_langs_model import ARCHITECTURE, make_many_langs

from hostile_models.case import OPENS, OVER_BUDGET, Make, hostile, pipe, register_all, written

NOT_PLAIN = "is not a plain pickle of tensors, so it is not opened"
TRACE = Path(tempfile.gettempdir()) / "polyseme-attack-ran"  # written by code that must not run
BIAS = "forward_layer_0.state_linearity.bias"


def model(folder: Path) -> Path:
    return make_many_langs(folder / "model")


def with_tensors(change: Callable[[dict[str, Any]], object], legacy: bool = False) -> Make:
    def make(folder: Path) -> Path:
        place = model(folder)
        tensors = torch.load(place / "encoder.pkl", weights_only=True)
        change(tensors)
        torch.save(tensors, place / "encoder.pkl", _use_new_zipfile_serialization=not legacy)
        return place

    return make


def with_file(name: str, content: bytes | str) -> Make:
    return lambda folder: written(model(folder) / name, content).parent


class _Code:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {TRACE}",)


class _Bytes:
    def __reduce__(self) -> tuple[Any, ...]:
        return bytearray, (10**11,)


def legacy(main: bytes, storages: bytes = b"") -> bytes:
    """A file of torch's old format around a pickle of one's own."""
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    parts = [pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, system)]
    return b"".join(parts) + main + storages


def as_zip(main: bytes, *records: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> Make:
    def make(folder: Path) -> Path:
        place = model(folder)
        with zipfile.ZipFile(place / "encoder.pkl", "w", method) as archive:
            for name, content in (("data.pkl", main), ("version", b"3\n"), *records):
                archive.writestr(f"archive/{name}", content)
        return place

    return make


def tensor_pickle(shape: tuple[int, ...], stride: tuple[int, ...], numel: int, many: int = 1) -> bytes:
    """The pickle of tensors that all lie in one storage, however large they say that they are."""

    def number(value: int) -> bytes:
        return pickle.LONG1 + bytes([9]) + value.to_bytes(9, "little")

    def numbers(values: tuple[int, ...]) -> bytes:
        return pickle.MARK + b"".join(map(number, values)) + pickle.TUPLE

    def text(value: str) -> bytes:
        return pickle.BINUNICODE + struct.pack("<I", len(value)) + value.encode()

    storage = pickle.MARK + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(numel)
    storage += pickle.TUPLE + pickle.BINPERSID
    one = b"ctorch._utils\n_rebuild_tensor_v2\n" + pickle.MARK + storage + number(0) + numbers(shape) + numbers(stride)
    one += pickle.NEWFALSE + b"ccollections\nOrderedDict\n" + pickle.EMPTY_TUPLE + pickle.REDUCE
    one += pickle.TUPLE + pickle.REDUCE
    entries = b"".join(text(f"{BIAS}{place}") + one + pickle.SETITEM for place in range(many))
    return pickle.PROTO + b"\2" + pickle.EMPTY_DICT + entries + pickle.STOP


TOO_LONG = "its pickle has over 200,000 instructions"
register_all(
    "pickles",
    {
        "code": (with_file("encoder.pkl", pickle.dumps(_Code(), 2)), NOT_PLAIN),
        "code in torch's old format": (with_file("encoder.pkl", legacy(pickle.dumps(_Code(), 2))), NOT_PLAIN),
        "code in torch's zip": (as_zip(pickle.dumps({"a": _Code()}, 2)), NOT_PLAIN),
        "100 GB of bytes": (
            as_zip(pickle.dumps({"a": _Bytes()}, 2)),
            f"{NOT_PLAIN}|should hold tensors|too little memory",
        ),
        "stride 0": (as_zip(tensor_pickle((100_000, 50_000), (0, 0), 4), ("data/0", bytes(16))), OVER_BUDGET),
        "1,000 tensors in one place": (
            as_zip(tensor_pickle((1000, 1000), (0, 0), 4, many=1000), ("data/0", bytes(16))),
            OVER_BUDGET,
        ),
        "a shape that overflows": (
            as_zip(tensor_pickle((1 << 40, 1 << 40), (0, 0), 4), ("data/0", bytes(16))),
            f"{NOT_PLAIN}|would take",
        ),
        "a tensor beyond its storage": (as_zip(tensor_pickle((1000,), (1,), 4), ("data/0", bytes(16))), NOT_PLAIN),
        "a storage that is not there": (as_zip(tensor_pickle((4,), (1,), 4)), NOT_PLAIN),
        "a storage of 4 TB in the old format": (
            with_file("encoder.pkl", legacy(tensor_pickle((4,), (1,), 10**12))),
            NOT_PLAIN,
        ),
        "a storage of 4 GB in the old format": (
            with_file("encoder.pkl", legacy(tensor_pickle((4,), (1,), 10**9))),
            NOT_PLAIN,
        ),
        "a million instructions": (as_zip(b"\x80\2" + b"N0" * 500_000 + b"N."), TOO_LONG),
        "a million instructions in the old format": (
            with_file("encoder.pkl", legacy(b"\x80\2" + b"N0" * 500_000 + b"N.")),
            TOO_LONG,
        ),
        "100,000 brackets": (
            as_zip(b"\x80\2" + b"]" * 100_000 + b"a" * 99_999 + b"."),
            f"{NOT_PLAIN}|should hold tensors",
        ),
        "a list": (as_zip(pickle.dumps([1, 2], 2)), "should hold tensors by name, not list"),
        "tables in tables": (as_zip(pickle.dumps({"a": {"b": 1}}, 2)), "should hold tensors by name"),
        "names that are numbers": (with_tensors(lambda t: t.update({7: torch.ones(1)})), OPENS),
        "a tensor without memory": (
            with_tensors(lambda t: t.update({BIAS: torch.empty(28, device="meta")})),
            "should be a plain tensor|not a plain",
        ),
        "a sparse tensor": (
            with_tensors(lambda t: t.update({BIAS: torch.zeros(28).to_sparse()})),
            "should be a plain tensor",
        ),
        "integers": (with_tensors(lambda t: t.update({BIAS: torch.zeros(28).long()})), "should be a plain tensor"),
        "complex numbers": (
            with_tensors(lambda t: t.update({BIAS: torch.zeros(28).cfloat()})),
            "should be a plain tensor",
        ),
        "NaN": (with_tensors(lambda t: t[BIAS].fill_(torch.nan)), "not finite"),
        "1e300 in float64": (with_tensors(lambda t: t.update({BIAS: t[BIAS].double() + 1e300})), "not finite"),
        "another shape": (with_tensors(lambda t: t.update({BIAS: torch.zeros(3)})), "should have shape"),
        "a missing tensor": (with_tensors(lambda t: t.pop(BIAS)), "is missing"),
        "the old format, in order": (with_tensors(lambda t: None, legacy=True), OPENS),
        "noise": (with_file("encoder.pkl", os.urandom(1000)), NOT_PLAIN),
        "an empty file": (with_file("encoder.pkl", b""), NOT_PLAIN),
        "a JSON list beside it": (with_file("notes.json", "[1, 2]"), OPENS),
        "a JSON list beside it, first": (with_file("aaa.json", "[1, 2]"), OPENS),
        "broken JSON beside it": (with_file("aaa.json", "{{{"), OPENS),
        "a pipe beside it": (lambda folder: pipe(model(folder) / "aaa.json").parent, OPENS),
        "a dictionary that is a pipe": (lambda folder: pipe(model(folder) / "word.dic").parent, "not a plain file"),
        "a dictionary of 10^30 words": (
            with_file("word.dic", f"a\t{10**30}\n"),
            "expected a token, a tab and a number",
        ),
        "a dictionary of one long line": (with_file("word.dic", "x" * 1_000_000), "expected a token, a tab"),
        "a settings file that is a list": (with_file("config.json", "[]"), "should hold a JSON object"),
    },
)


def with_architecture(**changes: Any) -> Make:
    def make(folder: Path) -> Path:
        token = {**ARCHITECTURE["token_embedder"], **changes}
        return written(model(folder) / "tiny.json", json.dumps({**ARCHITECTURE, "token_embedder": token})).parent

    return make


register_all(
    "pickles",
    {
        "2,000,000,000 characters": (with_architecture(max_characters_per_token=2 * 10**9), "must be 3 to 1,000"),
        "200,000 filters": (with_architecture(filters=[[1, 1]] * 200_000), "at most 100 widths"),
        "filters that are text": (with_architecture(filters="xx"), "cannot be read as ELMoForManyLangs"),
        "a name that is a number": (with_architecture(name=3), "cannot be read as ELMoForManyLangs"),
        "10^9 highways": (with_architecture(n_highway=10**9), "num_highway must be 0 to 100"),
    },
)


@hostile(OVER_BUDGET, slow=True)
def a_storage_of_600_mib_deflated(folder: Path) -> Path:
    storage = ("data/0", bytes(600 << 20))
    return as_zip(tensor_pickle((4,), (1,), 150 << 20), storage, method=zipfile.ZIP_DEFLATED)(folder)


@hostile(NOT_PLAIN)
def a_tar_of_torchs_first_format(folder: Path) -> Path:
    place = model(folder)
    with tarfile.open(place / "encoder.pkl", "w") as archive:
        link = tarfile.TarInfo("storages")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return place
