"""Hostile folders of our own format: lies in the safetensors header, the settings and the manifest."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tiny_models import make_encoder

from hostile_models.case import (
    OPENS,
    OVER_BUDGET,
    Make,
    edit_settings,
    edit_tensors,
    hostile,
    pipe,
    register_all,
    sparse,
    written,
)
from polyseme.formats.native import write_manifest

INPUT = "lstms.0.0.input"
WORDS = ["<S>", "</S>", "<UNK>", "the", "bank"]


def model(folder: Path, **changes: Any) -> Path:
    place = folder / "model"
    make_encoder(**changes).save(place)
    return place


def with_file(name: str, content: bytes) -> Make:
    def make(folder: Path) -> Path:
        place = model(folder)
        written(place / name, content)
        write_manifest(place)
        return place

    return make


def with_settings(change: Callable[[dict[str, Any]], object], **changes: Any) -> Make:
    return lambda folder: edit_settings(model(folder, **changes), change)


def with_tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Make:
    return lambda folder: edit_tensors(model(folder), change)


def raw(header: object, data: bytes = bytes(64), length: int | None = None) -> bytes:
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(encoded) if length is None else length) + encoded + data


def tensor(first: int, last: int, shape: list[int], dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


UNREADABLE = r"model\.safetensors cannot be read: "
HEADERS = {
    "a header of 2^63 bytes": (raw({}, length=1 << 63), UNREADABLE),
    "a header longer than the file": (raw({}, length=1 << 20), UNREADABLE),
    "a header that is no JSON": (raw(b"{]"), UNREADABLE),
    "a header that is a list": (raw([1, 2]), UNREADABLE),
    "a header that is not UTF-8": (raw(b'{"\xff": 1}'), UNREADABLE),
    "a header 100,000 brackets deep": (raw(b"[" * 100_000), UNREADABLE),
    "no header at all": (b"\x01", UNREADABLE),
    "an empty file": (b"", UNREADABLE),
    "overlapping tensors": (raw({"a": tensor(0, 16, [4]), "b": tensor(8, 24, [4])}, bytes(24)), UNREADABLE),
    "a hole between tensors": (raw({"a": tensor(0, 16, [4]), "b": tensor(32, 48, [4])}, bytes(48)), UNREADABLE),
    "negative offsets": (raw({"a": tensor(-16, 0, [4])}), UNREADABLE),
    "offsets the wrong way round": (raw({"a": tensor(16, 0, [4])}), UNREADABLE),
    "offsets beyond the end": (raw({"a": tensor(0, 1 << 40, [1 << 38])}), UNREADABLE),
    "a shape that is not its size": (raw({"a": tensor(0, 64, [4, 5])}), UNREADABLE),
    "a shape that overflows": (raw({"a": tensor(0, 64, [1 << 40, 1 << 40])}), UNREADABLE),
    "a negative shape": (raw({"a": tensor(0, 64, [-4, -4])}), UNREADABLE),
    "an unknown type": (raw({"a": tensor(0, 64, [16], "X9")}), UNREADABLE),
    "a tensor of booleans": (raw({"a": tensor(0, 64, [64], "BOOL")}), "should hold floating-point numbers or int8"),
    "a tensor of integers": (raw({"a": tensor(0, 64, [8], "I64")}), "should hold floating-point numbers or int8"),
    "a tensor without elements": (raw({"a": tensor(0, 0, [0, 1 << 50])}, b""), "unexpected tensor 'a'"),
    "the same name twice": (
        raw(
            b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}',
            bytes(16),
        ),
        "cannot be read|unexpected tensor",
    ),
    "a very long name": (raw({"a" * 500_000: tensor(0, 64, [16])}), "unexpected tensor 'aaa"),
    "a name with line ends": (raw({"a\nb": tensor(0, 64, [16])}), r"unexpected tensor 'a\\nb'"),
    "bytes after the tensors": (raw({"a": tensor(0, 16, [4])}, bytes(64)), UNREADABLE),
    "ten thousand tensors": (raw({str(n): tensor(0, 0, [0]) for n in range(10_000)}, b""), "unexpected tensor"),
    "a header of 9 MiB": (raw(b"{}" + b" " * (9 << 20)), r"has a header of 9,437,186 bytes"),
}
register_all(
    "native", {name: (with_file("model.safetensors", content), said) for name, (content, said) in HEADERS.items()}
)

FINITE = r"holds values that are not finite \(NaN or infinity\); the file is damaged$"
register_all(
    "native",
    {
        "a weight that is NaN": (with_tensors(lambda t: t[INPUT][0].fill_(torch.nan)), FINITE),
        "an infinite weight": (with_tensors(lambda t: t[INPUT][0].fill_(-torch.inf)), FINITE),
        "1e300 in float64": (with_tensors(lambda t: t.update({INPUT: t[INPUT].double() + 1e300})), FINITE),
        "weights of 3e38": (
            with_tensors(lambda t: [w.fill_(3e38) for w in t.values()]),
            "gives vectors that are not finite",
        ),
        "int8 with scales that are NaN": (
            with_tensors(
                lambda t: t.update({INPUT: t[INPUT].char(), f"{INPUT}.scale": torch.full((1, 40), torch.nan)})
            ),
            FINITE,
        ),
        "int8 with scales that overflow": (
            with_tensors(lambda t: t.update({INPUT: t[INPUT].char() + 9, f"{INPUT}.scale": torch.full((1, 40), 3e38)})),
            FINITE,
        ),
        "int8 scales that broadcast": (
            with_tensors(
                lambda t: t.update(
                    {INPUT: torch.ones(1, 1, 20_000).char(), f"{INPUT}.scale": torch.ones(20_000, 20_000 // 1_000, 1)}
                )
            ),
            "but its scales have",
        ),
        "int8 scales of another rank": (
            with_tensors(lambda t: t.update({INPUT: t[INPUT].char(), f"{INPUT}.scale": torch.ones(9, 1, 1, 40)})),
            "but its scales have",
        ),
        "float64 that is right": (with_tensors(lambda t: t.update({INPUT: t[INPUT].double()})), OPENS),
        "a missing tensor": (with_tensors(lambda t: t.pop(INPUT)), "is missing"),
    },
)

CNN = ("model", "input", "characters")


def setting(*path: str, value: object, **changes: Any) -> Make:
    def change(settings: dict[str, Any]) -> None:
        table = settings
        for name in path[:-1]:
            table = table[name]
        table[path[-1]] = value

    return with_settings(change, **changes)


register_all(
    "native",
    {
        "2,000,000,000 characters a word": (setting(*CNN, "max_characters", value=2 * 10**9), "must be 3 to 1,000"),
        "200,000 filters": (setting(*CNN, "filters", value=[[1, 1]] * 200_000), "at most 100 widths"),
        "a filter of 10^9": (setting(*CNN, "filters", value=[[1, 10**9]]), "131,072 in all"),
        "10^9 cells": (setting("model", "lstm", "cells", value=10**9), "cells must be 1 to 131,072"),
        "131,072 cells": (setting("model", "lstm", "cells", value=131_072), "should have shape"),
        "10^6 layers": (setting("model", "lstm", "num_layers", value=10**6), "num_layers must be 0 to 100"),
        "a forget bias of 1e308": (setting("model", "lstm", "forget_bias", value=1e308), "must be -100.0 to 100.0"),
        "a clip that is NaN": (setting("model", "lstm", "cell_clip", value=float("nan")), "cell_clip must be above 0"),
        "a clip of 1e308": (setting("model", "lstm", "cell_clip", value=1e308), "cell_clip must be above 0"),
        "a width that is true": (setting("model", "lstm", "dim", value=True), "dim must be int"),
        "settings that are a list": (setting("model", value=[]), "must be a table of settings"),
        "settings that are very long": (setting("model", value="x" * 100_000), "must be a table of settings"),
        "an unknown precision": (setting("precision", value="int4"), "precision is 'int4'"),
        "an unknown version": (setting("version", value=99), "version 99"),
        "characters of an unknown kind": (
            setting("characters", value={"unit": "x"}),
            "must be 'bytes' or 'dictionary'",
        ),
        "characters that are a number": (setting("characters", value=3), "should be a table of settings"),
        "more words than the vocabulary": (
            setting("model", "input", "num_words", value=10**6, words=WORDS),
            "should have shape",
        ),
        "a crop that is text": (setting("vocabulary", "longest", value="x", words=WORDS), "should be a number of char"),
        "a vocabulary that is a number": (setting("vocabulary", value=3, words=WORDS), "cannot be read as polyseme"),
        "settings 100,000 brackets deep": (with_file("config.json", b"[" * 100_000), "is not JSON"),
        "a number of 5,000 digits": (with_file("config.json", b'{"a": ' + b"9" * 5000 + b"}"), "is not JSON"),
        "settings that are not UTF-8": (with_file("config.json", b"\xff"), "is not JSON"),
        "settings of 33 MiB": (with_file("config.json", b"{}" + b" " * (33 << 20)), "expected the settings of a model"),
        "a manifest of numbers": (
            lambda folder: written(model(folder) / "manifest.json", '{"files": {"config.json": 1}}').parent,
            "should list size and SHA-256",
        ),
        "a manifest that lies about a size": (
            lambda folder: (
                written(
                    model(folder) / "manifest.json", '{"files": {"config.json": {"bytes": 1e99, "sha256": ""}}}'
                ).parent
            ),
            "should have 1e\\+99 bytes",
        ),
    },
)


@hostile("config.json cannot be read: it is not a plain file")
def settings_that_are_a_pipe(folder: Path) -> Path:
    place = model(folder)
    pipe(place / "config.json")
    return place


@hostile("is not a model that polyseme can open")
def weights_that_are_a_pipe(folder: Path) -> Path:
    place = model(folder)
    pipe(place / "model.safetensors")
    return place


@hostile("is not a model that polyseme can open")
def weights_that_are_a_device(folder: Path) -> Path:
    place = model(folder)
    (place / "model.safetensors").unlink()
    (place / "model.safetensors").symlink_to("/dev/zero")
    return place


@hostile(OVER_BUDGET)
def weights_with_a_hole_of_700_gib(folder: Path) -> Path:
    place = model(folder)
    weights = sparse(place / "model.safetensors", 700 << 30)
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["files"]["model.safetensors"]["bytes"] = weights.stat().st_size
    written(place / "manifest.json", json.dumps(manifest))
    return place


@hostile("the model has 5 words, but its vocabulary 6")
def a_vocabulary_with_a_word_more(folder: Path) -> Path:
    place = model(folder, words=WORDS)
    with (place / "vocabulary.txt").open("a") as file:
        file.write("more\n")
    write_manifest(place)
    return place


@hostile(OPENS)
def weights_that_are_a_link_to_a_file(folder: Path) -> Path:
    place = model(folder)
    (place / "model.safetensors").rename(folder / "elsewhere")
    (place / "model.safetensors").symlink_to(folder / "elsewhere")
    return place
