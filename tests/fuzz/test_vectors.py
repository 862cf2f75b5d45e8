"""Hostile files of static vectors: GloVe and word2vec text, word2vec binary, NumPy; and JSON settings of models."""

import io
import json

import numpy as np
from fuzzing import HARNESS, damaged, put, works_or_refuses
from hypothesis import given

from polyseme.files import read_json
from polyseme.formats.vectors import open_vectors

GLOVE = b"the 0.1 -2 3e-1\nbank 1 2 3\n. . . 4 5 6\n"
WORD2VEC = b"2 3\n" + GLOVE.splitlines(keepends=True)[0] + b"fa\xc3\xa7ade\t1\t2\t3\n"
BINARY = b"2 3\n" + b"".join(word + b" " + np.arange(3, dtype="<f4").tobytes() + b"\n" for word in (b"the", b"a\xff"))
FASTTEXT = b"2 3\nthe 1 2 3 \n</s> 4 5 6 \n"
OPTIONS = json.dumps({"lstm": {"cell_clip": 3, "dim": 16}, "char_cnn": {"filters": [[1, 4]], "max": 1e3}}).encode()
HEADERS = (b"2 3\n", b"999999999999 131072\n", b"0 0\n", b"1 999999\n", b" nan inf\n", b" 1e39 -1e39 0\n")


def _numpy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(6, dtype=np.float16).reshape(2, 3))
    return file.getvalue()


def _read(path):
    with works_or_refuses():
        table = open_vectors(path, cache=False)
        assert np.isfinite(table.vectors).all()
        assert len([table.word(row) for row in range(len(table))]) == len(table) > 0


@HARNESS
@given(damaged(GLOVE, WORD2VEC, FASTTEXT, tokens=HEADERS))
def test_text_vectors(folder, content):
    _read(put(folder / "vectors.txt", content))


@HARNESS
@given(damaged(BINARY, tokens=HEADERS))
def test_binary_vectors(folder, content):
    _read(put(folder / "vectors.bin", content))


@HARNESS
@given(damaged(_numpy(), tokens=(b"(2, 3)", b"(99999999999, 3)", b"'<f4'", b"'|O'", b"(((", b"fortran_order")))
def test_numpy_vectors(folder, content):
    put(folder / "vocab.txt", b"the\nbank\n")
    _read(put(folder / "vectors.npy", content))


@HARNESS
@given(damaged(OPTIONS, tokens=(b"[" * 100_000, b'{"a":' * 5000, b"NaN", b"1" * 5000, b'"\\ud800"')))
def test_json(folder, content):
    with works_or_refuses():
        assert isinstance(read_json(put(folder / "options.json", content)), dict)
