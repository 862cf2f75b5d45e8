"""Finished sentences survive whatever ends the run."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from polyseme.embedding import parts as parts_module
from polyseme.embedding.parts import Parts, parts_folder
from polyseme.embedding.records import Record
from polyseme.errors import FormatError, InputError, OutputError

SETTINGS = {"model": "sha256:12ab", "layer": "average", "bits": 32}


def sentence(number, dtype="float32"):
    words = [f"word{number}.{position}" for position in range(number % 4)]
    return Record(words, np.full((3, len(words), 8), number, dtype))


def same(left, right):
    left, right = list(left), list(right)
    return [record.words for record in left] == [record.words for record in right] and all(
        a.vectors.dtype == b.vectors.dtype and np.array_equal(a.vectors, b.vectors, equal_nan=True)
        for a, b in zip(left, right, strict=True)
    )


@pytest.fixture
def small_parts(monkeypatch):
    """Five sentences fill a part."""
    monkeypatch.setattr(parts_module, "PART_SENTENCES", 5)


@pytest.fixture
def folder(tmp_path, small_parts):
    """Three parts of five sentences, on disk."""
    parts = Parts.create(tmp_path / "vectors.h5.parts", SETTINGS)
    parts.append(sentence(number) for number in range(15))
    return parts.folder


def test_the_folder_stands_beside_the_output(tmp_path):
    assert parts_folder(tmp_path / "vectors.h5") == tmp_path / "vectors.h5.parts"


def test_records_come_back_in_order(folder):
    assert same(Parts.resume(folder, SETTINGS).read(), map(sentence, range(15)))


@settings(deadline=None)
@given(
    st.lists(st.lists(st.text(st.characters(exclude_categories=()))), max_size=5),
    st.sampled_from(["float16", "float32"]),
    st.sampled_from([(3, None, 2), (None, 2), (2,)]),
    st.data(),
)
def test_any_record_survives(tmp_path_factory, sentences, dtype, shape, data):
    shapes = [tuple(len(words) if size is None else size for size in shape) for words in sentences]
    records = [Record(words, data.draw(hnp.arrays(dtype, size))) for words, size in zip(sentences, shapes, strict=True)]
    parts = Parts.create(tmp_path_factory.mktemp("parts"), SETTINGS)
    parts.append(records)
    parts.flush()
    assert same(parts.read(), records)
    assert parts.done == len(records)


def test_sentences_in_memory_do_not_count_as_done(tmp_path, small_parts):
    parts = Parts.create(tmp_path / "parts", SETTINGS)
    parts.append(sentence(number) for number in range(7))
    assert parts.done == 5
    parts.flush()
    assert parts.done == 7


def test_a_part_is_written_when_its_vectors_are_large(tmp_path, monkeypatch):
    monkeypatch.setattr(parts_module, "PART_BYTES", 100)
    parts = Parts.create(tmp_path / "parts", SETTINGS)
    parts.append([sentence(3)])
    assert parts.done == 1


def test_vectors_may_be_overwritten_by_the_caller_after_append(tmp_path):
    parts = Parts.create(tmp_path / "parts", SETTINGS)
    record = sentence(3)
    parts.append([record])
    record.vectors[:] = -1
    parts.flush()
    assert same(parts.read(), [sentence(3)])


def test_flush_of_nothing_writes_nothing(tmp_path):
    parts = Parts.create(tmp_path / "parts", SETTINGS)
    parts.flush()
    assert [path.name for path in parts.folder.iterdir()] == ["fingerprint.json"]


def test_resume_begins_where_nothing_is(tmp_path):
    assert Parts.resume(tmp_path / "parts", SETTINGS).done == 0


def test_create_refuses_the_folder_of_another_run(folder):
    with pytest.raises(OutputError, match="--resume"):
        Parts.create(folder, SETTINGS)


def test_create_says_when_the_folder_cannot_be_made(tmp_path):
    with pytest.raises(OutputError, match="cannot make the folder"):
        Parts.create(tmp_path / "missing" / "parts", SETTINGS)


def test_resume_with_other_settings_names_them(folder):
    with pytest.raises(OutputError, match="layer was 'average' and is now 'top'; words was None and is now 7"):
        Parts.resume(folder, {**SETTINGS, "layer": "top", "words": 7})


def test_resume_refuses_parts_whose_settings_are_lost(folder):
    (folder / "fingerprint.json").write_text("{")
    with pytest.raises(OutputError, match="remove the folder"):
        Parts.resume(folder, SETTINGS)
    (folder / "fingerprint.json").unlink()
    with pytest.raises(OutputError, match="remove the folder"):
        Parts.resume(folder, SETTINGS)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def spoil_header(path):
    path.write_bytes(path.read_bytes().replace(b'"sentences": 5', b'"sentences": 6'))


def empty(path):
    path.write_bytes(b"")


DAMAGES = [cut_short, flip_a_bit, spoil_header, empty, os.unlink]


@pytest.mark.parametrize("damage", DAMAGES)
def test_everything_from_a_damaged_part_on_is_done_again(folder, damage):
    damage(sorted(folder.glob("*.part"))[1])
    parts = Parts.resume(folder, SETTINGS)
    assert parts.done == 5
    assert len(list(folder.glob("*.part"))) == 1
    parts.append(sentence(number) for number in range(parts.done, 15))
    assert same(parts.read(), map(sentence, range(15)))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_part_damaged_after_resume_is_not_read(folder, damage):
    parts = Parts.resume(folder, SETTINGS)
    damage(sorted(folder.glob("*.part"))[1])
    with pytest.raises(FormatError, match="--resume"):
        list(parts.read())


def test_a_part_that_cannot_be_opened_is_not_deleted(folder, monkeypatch):
    def refuse(_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(parts_module, "_check_fingerprint", lambda *_: None)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(OutputError, match="Permission denied"):
        Parts.resume(folder, SETTINGS)
    assert len(list(folder.glob("*.part"))) == 3


def test_records_of_another_kind_are_refused(folder):
    parts = Parts.resume(folder, SETTINGS)
    with pytest.raises(InputError, match=r"float32 \(3, words, 8\), got float16"):
        parts.append([sentence(3, "float16")])


@pytest.mark.parametrize(
    "vectors", [np.zeros((3, 2, 8), "float32"), np.zeros((3, 1, 8)), np.zeros((1, 1, 1, 1), "float32"), np.float32(0)]
)
def test_vectors_that_do_not_fit_their_words_are_refused(tmp_path, vectors):
    with pytest.raises(InputError, match="shape"):
        Parts.create(tmp_path / "parts", SETTINGS).append([Record(["word"], vectors)])


def test_remove_leaves_nothing(folder):
    Parts.resume(folder, SETTINGS).remove()
    assert not folder.exists()


def test_remove_spares_what_is_not_ours(folder):
    (folder / "notes.txt").touch()
    Parts.resume(folder, SETTINGS).remove()
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_a_full_disk_keeps_the_finished_parts(folder, monkeypatch):
    parts = Parts.resume(folder, SETTINGS)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OutputError, match="No space left on device"):
            parts.append(sentence(number) for number in range(15, 20))
    assert not list(folder.glob(".*"))
    assert Parts.resume(folder, SETTINGS).done == 15


KILLED = """
import json, os, signal, sys
from pathlib import Path
import numpy as np
from polyseme.embedding import parts
from polyseme.embedding.records import Record

folder, call, count, settings = sys.argv[1:]
parts.PART_SENTENCES = 5
calls = 0

def deadly(function):
    def replacement(*arguments):
        global calls
        calls += 1
        if calls == int(count):
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)
    return replacement

setattr(os, call, deadly(getattr(os, call)))
work = parts.Parts.resume(Path(folder), json.loads(settings))
for number in range(work.done, 15):
    words = [f"word{number}.{position}" for position in range(number % 4)]
    work.append([Record(words, np.full((3, len(words), 8), number, "float32"))])
"""


@pytest.mark.parametrize(
    ("call", "count", "done"),
    [("fsync", 1, 0), ("replace", 1, 0), ("fsync", 2, 0), ("replace", 3, 5), ("fsync", 6, 10)],
)
def test_a_killed_run_loses_only_the_part_in_memory(tmp_path, call, count, done):
    folder = tmp_path / "parts"
    command = [sys.executable, "-c", KILLED, str(folder), call, str(count), json.dumps(SETTINGS)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    parts = Parts.resume(folder, SETTINGS)
    assert parts.done == done
    parts.append(sentence(number) for number in range(done, 15))
    parts.flush()
    assert same(parts.read(), map(sentence, range(15)))
    assert not list(folder.glob(".*"))
