"""One contract for the three formats of the final file."""

import errno
import json
import logging
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from polyseme.embedding import hdf5, parquet, writers
from polyseme.embedding.parts import Parts
from polyseme.embedding.records import Record
from polyseme.errors import FormatError, InputError, MissingExtraError, OutputError

SUFFIXES = [".h5", ".hdf5", ".parquet", ".npz"]
SHAPES = {"all layers": (3, None, 8), "one layer": (None, 8), "pooled": (8,)}
SENTENCES = [
    [],
    ["I", "put", "my", "books", "."],
    [".", "..", "/", "a/b", "\\", '"', "</S>", "sentence_to_index"],
    ["naïve", "漢字", "e\u0301", "👩‍👩‍👧", "\u202eabc"],
    ["\ud800", "x\0y", "\n", "\r\n", "\t", " ", ""],
    [],
    [],
    ["I", "put", "my", "books", "."],
    ["long"] * 700,
    [],
]

every_format = pytest.mark.parametrize("suffix", SUFFIXES)


def records(shape=(3, None, 8), dtype="float32", sentences=SENTENCES):
    random = np.random.default_rng(1)
    sizes = [tuple(len(words) if size is None else size for size in shape) for words in sentences]
    return [
        Record(words, random.standard_normal(size).astype(dtype)) for words, size in zip(sentences, sizes, strict=True)
    ]


def assert_same(vectors, expected):
    vectors = list(vectors)
    assert [(one.dtype, one.shape) for one in vectors] == [(r.vectors.dtype, r.vectors.shape) for r in expected]
    assert all(np.array_equal(a, b.vectors, equal_nan=True) for a, b in zip(vectors, expected, strict=True))


@every_format
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_come_back_as_they_were(tmp_path, suffix, shape, dtype):
    path = tmp_path / f"vectors{suffix}"
    expected = records(shape, dtype)
    writers.write_vectors(iter(expected), path)
    assert_same(writers.read_vectors(path), expected)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".h5", ".parquet", ".npz"])
@settings(deadline=None, max_examples=50)
@given(
    sentences=st.lists(st.lists(st.text(st.characters(exclude_categories=()))), max_size=5),
    dtype=st.sampled_from(["float16", "float32"]),
    shape=st.sampled_from([*SHAPES.values()]),
    data=st.data(),
)
def test_any_vectors_come_back(tmp_path_factory, suffix, sentences, dtype, shape, data):
    drawn = [Record(w, data.draw(hnp.arrays(dtype, v.shape))) for w, v in records(shape, dtype, sentences)]
    path = tmp_path_factory.mktemp("any") / f"vectors{suffix}"
    writers.write_vectors(drawn, path)
    assert_same(writers.read_vectors(path), drawn)


@every_format
@pytest.mark.parametrize("sentences", [[], [[]], [[], [], []]])
def test_outputs_without_words_are_fine(tmp_path, suffix, sentences):
    expected = records(sentences=sentences)
    writers.write_vectors(expected, tmp_path / f"vectors{suffix}")
    assert_same(writers.read_vectors(tmp_path / f"vectors{suffix}"), expected)


@every_format
def test_two_runs_give_the_same_bytes(tmp_path, suffix):
    paths = [tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"]
    for path in paths:
        writers.write_vectors(records(), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@every_format
def test_parts_are_written_as_they_are_read(tmp_path, suffix):
    parts = Parts.create(tmp_path / "parts", {})
    parts.append(records())
    parts.flush()
    writers.write_vectors(parts.read(), tmp_path / f"vectors{suffix}")
    assert_same(writers.read_vectors(tmp_path / f"vectors{suffix}"), records())


@every_format
def test_non_contiguous_vectors_are_written_right(tmp_path, suffix):
    turned = [Record(["a", "b"], np.arange(24, dtype="float32").reshape(2, 3, 4).swapaxes(0, 1))]
    writers.write_vectors(turned, tmp_path / f"vectors{suffix}")
    assert_same(writers.read_vectors(tmp_path / f"vectors{suffix}"), turned)


@every_format
def test_records_of_two_kinds_are_refused_and_nothing_is_left(tmp_path, suffix):
    with pytest.raises(InputError, match="must have the same shape"):
        writers.write_vectors([*records(), *records(dtype="float16")], tmp_path / f"vectors{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["vectors", "vectors.txt", "vectors.h5.gz"])
def test_other_suffixes_are_refused_with_the_list(tmp_path, name):
    for refuse in (writers.check_suffix, lambda path: writers.write_vectors([], path)):
        with pytest.raises(OutputError, match=r"\.h5, \.hdf5, \.parquet, \.npz; got 'vectors"):
            refuse(tmp_path / name)
    with pytest.raises(FormatError, match=r"\.h5, \.hdf5, \.parquet, \.npz; got 'vectors"):
        writers.read_vectors(tmp_path / name)


@pytest.mark.parametrize(("suffix", "module"), [(".h5", "h5py"), (".parquet", "pyarrow")])
def test_a_missing_extra_is_told_before_the_work(tmp_path, monkeypatch, suffix, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'polyseme\["):
        writers.check_suffix(tmp_path / f"vectors{suffix}")
    writers.check_suffix(tmp_path / "vectors.npz")


def cut_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def cut_the_end(path):
    path.write_bytes(path.read_bytes()[:-10])


def fill_with_text(path):
    path.write_text("These are not vectors.")


@every_format
@pytest.mark.parametrize("damage", [cut_in_half, cut_the_end, fill_with_text, os.unlink])
def test_a_file_that_is_not_whole_is_a_format_error(tmp_path, suffix, damage):
    path = tmp_path / f"vectors{suffix}"
    writers.write_vectors(records(), path)
    damage(path)
    with pytest.raises(FormatError, match="vectors"):
        list(writers.read_vectors(path))


def test_foreign_files_say_what_they_lack(tmp_path):
    import h5py
    import pyarrow as pa
    import pyarrow.parquet as pq

    with h5py.File(tmp_path / "weights.h5", "w") as file:
        file["bias"] = 1
    pq.write_table(pa.table({"sentence": [0]}), tmp_path / "table.parquet")
    np.savez(tmp_path / "arrays.npz", bias=np.ones(3))
    for name, lack in [
        ("weights.h5", "no dataset 0"),
        ("table.parquet", "polyseme.sentences"),
        ("arrays.npz", "0.npy"),
    ]:
        with pytest.raises(FormatError, match=lack):
            list(writers.read_vectors(tmp_path / name))


# Failure: the final name never appears


@every_format
@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_disk_that_is_full_at_the_end_leaves_the_old_file(tmp_path, monkeypatch, suffix, function):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / f"vectors{suffix}"
    path.write_text("old")
    monkeypatch.setattr(os, function, full)
    with pytest.raises(OutputError, match=r"vectors.*cannot be written: No space left on device"):
        writers.write_vectors(records(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


FULL = """
import resource, sys
from itertools import repeat
from pathlib import Path
import numpy as np
from polyseme.embedding import parquet, writers
from polyseme.embedding.records import Record
from polyseme.errors import OutputError

parquet._GROUP_BYTES = 100_000
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
random = np.random.default_rng(1)
words = ["word"] * int(sys.argv[2])
endless = (Record(words, random.standard_normal((3, len(words), 32), "float32")) for _ in repeat(None))
try:
    writers.write_vectors(endless, Path(sys.argv[1]))
except OutputError as error:
    print(error)
"""


@every_format
@pytest.mark.parametrize("words", [1, 50])
def test_a_disk_that_fills_up_ends_the_run_in_peace(tmp_path, suffix, words):
    path = tmp_path / f"vectors{suffix}"
    command = [sys.executable, "-W", "error", "-c", FULL, str(path), str(words)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert "cannot be written" in run.stdout
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_an_output_error(tmp_path):
    with pytest.raises(OutputError, match="No such file or directory"):
        writers.write_vectors(records(), tmp_path / "missing" / "vectors.npz")


@every_format
def test_an_error_among_the_records_passes_through(tmp_path, suffix):
    def failing():
        yield from records()
        raise FormatError("a part is damaged")

    with pytest.raises(FormatError, match="a part is damaged"):
        writers.write_vectors(failing(), tmp_path / f"vectors{suffix}")
    assert not list(tmp_path.iterdir())


KILLED = """
import os, signal, sys
from pathlib import Path
from polyseme.embedding import writers
from polyseme.embedding.parts import Parts

def deadly(records):
    for number, record in enumerate(records):
        if number == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        yield record

writers.write_vectors(deadly(Parts.resume(Path(sys.argv[1]), {}).read()), Path(sys.argv[2]))
"""


@every_format
def test_a_run_killed_while_writing_is_continued(tmp_path, suffix):
    parts, path = Parts.create(tmp_path / "parts", {}), tmp_path / f"vectors{suffix}"
    parts.append(records())
    parts.flush()
    run = subprocess.run([sys.executable, "-c", KILLED, str(parts.folder), str(path)], check=False)
    assert run.returncode == -signal.SIGKILL
    assert not path.exists()
    writers.write_vectors(Parts.resume(parts.folder, {}).read(), path)
    assert_same(writers.read_vectors(path), records())
    assert sorted(tmp_path.iterdir()) == [parts.folder, path]


# What is particular to one format


@pytest.fixture
def h5(tmp_path):
    """The sentences as an open HDF5 file, read as anybody would."""
    import h5py

    writers.write_vectors(records(), tmp_path / "vectors.h5")
    with h5py.File(tmp_path / "vectors.h5", "r") as file:
        yield file


def test_hdf5_is_read_as_allennlp_reads_it(h5):
    assert h5["sentence_to_index"].shape == (1,)
    index = json.loads(h5["sentence_to_index"][0])
    assert index == {" ".join(words): str(number) for number, words in enumerate(SENTENCES)}
    for text, number in index.items():
        assert text == " ".join(SENTENCES[int(number)])
        assert np.array_equal(h5[number][...], records()[int(number)].vectors)


def test_hdf5_holds_one_dataset_a_sentence(h5):
    assert set(h5) == {*map(str, range(len(SENTENCES))), "sentence_to_index"}


def test_hdf5_keeps_small_and_large_sentences(h5):
    assert h5["1"].nbytes <= hdf5._COMPACT_LIMIT < h5["8"].nbytes
    assert np.array_equal(h5["1"][1, 2:4], records()[1].vectors[1, 2:4])
    assert np.array_equal(h5["8"][:, 650], records()[8].vectors[:, 650])


def test_hdf5_leaves_out_a_map_that_no_string_can_hold(tmp_path, monkeypatch, caplog):
    import h5py

    monkeypatch.setattr(hdf5, "_INDEX_LIMIT", 100)
    with caplog.at_level(logging.WARNING):
        writers.write_vectors(records(), tmp_path / "vectors.h5")
    assert "sentence_to_index is left out" in caplog.text
    with h5py.File(tmp_path / "vectors.h5", "r") as file:
        assert "sentence_to_index" not in file
    assert_same(writers.read_vectors(tmp_path / "vectors.h5"), records())


@pytest.mark.parametrize(("shape", "dtype"), [((3, None, 8), "float32"), ((None, 8), "float16")])
def test_parquet_has_one_row_a_word(tmp_path, shape, dtype):
    import pyarrow.parquet as pq

    writers.write_vectors(records(shape, dtype), tmp_path / "vectors.parquet")
    table = pq.read_table(tmp_path / "vectors.parquet")
    rows = [(s, p, word) for s, words in enumerate(SENTENCES) for p, word in enumerate(words)]
    assert table["sentence"].to_pylist() == [row[0] for row in rows]
    assert table["position"].to_pylist() == [row[1] for row in rows]
    assert table["word"].to_pylist() == [row[2].replace("\ud800", "\\ud800") for row in rows]
    assert str(table.schema.types[:3]) == "[DataType(int64), DataType(int32), DataType(string)]"
    by_word = np.concatenate([np.moveaxis(r.vectors, -2, 0) for r in records(shape, dtype)])
    assert np.array_equal(np.array(table["vector"].to_pylist(), dtype), by_word)


def test_parquet_has_one_row_a_pooled_sentence(tmp_path):
    import pyarrow.parquet as pq

    writers.write_vectors(records((8,)), tmp_path / "vectors.parquet")
    table = pq.read_table(tmp_path / "vectors.parquet")
    assert table.column_names == ["sentence", "text", "vector"]
    assert table["text"].to_pylist() == [" ".join(words).replace("\ud800", "\\ud800") for words in SENTENCES]


def test_parquet_sentences_may_cross_row_groups_and_batches(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    path = tmp_path / "vectors.parquet"
    monkeypatch.setattr(parquet, "_GROUP_BYTES", 300)
    writers.write_vectors(records(), path)
    assert pq.ParquetFile(path).num_row_groups == sum(1 for words in SENTENCES if words)
    assert_same(writers.read_vectors(path), records())


def test_npz_is_read_by_numpy(tmp_path):
    writers.write_vectors(records(), tmp_path / "vectors.npz")
    with np.load(tmp_path / "vectors.npz", allow_pickle=False) as archive:
        assert np.array_equal(archive["1"], records()[1].vectors)
        assert archive.files == [str(number) for number in range(len(SENTENCES))]
