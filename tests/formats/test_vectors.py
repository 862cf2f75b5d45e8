"""Files of static vectors: every format gives the same words and numbers, and what is wrong is said in a sentence."""

import bz2
import errno
import gzip
import lzma
import os
import pickle

import numpy as np
import pytest
from safetensors.numpy import load_file

from polyseme.errors import FormatError, OutputError, require
from polyseme.formats.vectors import open_vectors, read_blocks, recognise, table
from polyseme.formats.vectors.text import write

WORDS = ["the", ",", "Bank", "bank", "Straße", "日本語", "x\u00a0y", "3.5"]
VECTORS = np.random.default_rng(0).standard_normal((len(WORDS), 5)).astype(np.float32)
LINES = [f"{word} {' '.join(map(repr, row.tolist()))}\n" for word, row in zip(WORDS, VECTORS, strict=True)]
GLOVE = "".join(LINES)
HEADED = f"{len(WORDS)} 5\n{GLOVE}"


def binary(ends: bytes = b"", words=WORDS, vectors=VECTORS) -> bytes:
    entries = (word.encode() + b" " + row.tobytes() + ends for word, row in zip(words, vectors, strict=True))
    return f"{len(words)} {vectors.shape[1]}\n".encode() + b"".join(entries)


def zst(data: bytes) -> bytes:
    return require("zstandard", "zstd").ZstdCompressor().compress(data)


FILES = {
    "glove.txt": GLOVE.encode(),
    "no newline at the end": GLOVE.encode().rstrip(b"\n"),
    "byte order mark": b"\xef\xbb\xbf" + GLOVE.encode(),
    "CR LF": GLOVE.replace("\n", "\r\n").encode(),
    "blank line at the end": GLOVE.encode() + b"\n",
    "tabs": GLOVE.replace(" ", "\t").encode(),
    "tab after the word": "".join(line.replace(" ", "\t", 1) for line in LINES).encode(),
    "double spaces": GLOVE.replace(" ", "  ").encode(),
    "word2vec.txt": HEADED.encode(),
    "fasttext.vec": HEADED.replace("\n", " \n").encode(),  # its lines end in a space
    "word2vec.bin": binary(),
    "word2vec of the C program": binary(ends=b"\n"),
    "x.txt.gz": gzip.compress(HEADED.encode()),
    "x.txt.bz2": bz2.compress(GLOVE.encode()),
    "x.vec.xz": lzma.compress(HEADED.encode()),
    "x.txt.zst": zst(GLOVE.encode()),
    "x.bin.gz": gzip.compress(binary()),
}


@pytest.fixture
def make(tmp_path):
    def made(content: str | bytes, name: str = "vectors.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return made


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("POLYSEME_CACHE", str(folder))
    return folder / "vectors"


def words_of(opened: table.VectorTable) -> list[str]:
    return [opened.word(row) for row in range(len(opened))]


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_words_and_numbers(make, name):
    opened = open_vectors(make(FILES[name], name))
    assert words_of(opened) == WORDS
    np.testing.assert_array_equal(opened.vectors, VECTORS)


@pytest.mark.parametrize("kind", ["<f4", ">f4", "f8", "f2"])
@pytest.mark.parametrize("name", ["glove.vocab", "glove.vocab.txt", "vocab.txt"])
def test_numpy_with_its_words_beside_it(tmp_path, make, kind, name):
    np.save(tmp_path / "glove.npy", VECTORS.astype(kind))
    make("".join(f"{word}\n" for word in WORDS), name)
    opened = open_vectors(tmp_path / "glove.npy")
    assert words_of(opened) == WORDS
    np.testing.assert_array_equal(opened.vectors, VECTORS.astype(kind).astype(np.float32))


def test_numpy_with_its_words_elsewhere(tmp_path, make):
    np.save(tmp_path / "glove.npy", VECTORS)
    assert words_of(open_vectors(tmp_path / "glove.npy", make("\n".join(WORDS), "elsewhere"))) == WORDS


@pytest.mark.parametrize("before", ["", "a 1 2 3\nb 1 2 3\n"])
def test_words_may_hold_spaces(make, before):
    opened = open_vectors(make(before + ". . . 1 2 3\nat name@domain.com 4 5 6\nc 7 8 9\nd 7 8 9\ne 7 8 9"))
    assert words_of(opened)[-5:] == [". . .", "at name@domain.com", "c", "d", "e"]
    assert opened.vectors[-4].tolist() == [4, 5, 6]


def test_of_a_word_that_comes_twice_the_first_counts(make, monkeypatch):
    monkeypatch.setattr(table, "ROWS", 3)  # several blocks
    lines = [f"w{number % 7} {number} {number + 1}\n" for number in range(20)]
    opened = open_vectors(make("".join(lines)))
    assert words_of(opened) == [f"w{number}" for number in range(7)]
    assert opened.vectors.tolist() == [[number, number + 1] for number in range(7)]
    assert opened.about["duplicates"] == "13"
    np.testing.assert_allclose(opened.mean, [3, 4])


def test_bytes_that_are_not_utf_8_are_replaced_in_a_binary_file_and_counted(make):
    content = binary().replace(b"Bank ", b"B\xffnk ")
    opened = open_vectors(make(content, "x.bin"))
    assert words_of(opened)[2] == "B\ufffdnk"
    assert opened.about["replaced"] == "1"


def test_words_are_found_and_others_are_not(make):
    opened = open_vectors(make(GLOVE))
    assert opened.find(WORDS).tolist() == list(range(len(WORDS)))
    assert opened.find(["", "unseen", "ban", "\ud800", "x y"]).tolist() == [-1] * 5
    assert opened.find([]).tolist() == []


def test_words_of_one_hash_are_told_apart(make, monkeypatch):
    monkeypatch.setattr(table, "_hash", lambda words: np.array([len(word) for word in words], dtype=np.int64))
    opened = open_vectors(make("ab 1\nba 2\nc 3\nba 4\nbb 5\n"))
    assert words_of(opened) == ["ab", "ba", "c", "bb"]
    assert opened.find(["bb", "ab", "ba", "aa", "c", "d", "eeeeee"]).tolist() == [3, 0, 1, -1, 2, -1, -1]


def test_blocks_of_many_lines_join(make, monkeypatch):
    monkeypatch.setattr("polyseme.formats.vectors.text.LINES", 3)
    monkeypatch.setattr("polyseme.formats.vectors.binary.CHUNK", 7)
    for content, name in ((HEADED, "x.txt"), (binary(b"\n"), "x.bin")):
        blocks = list(read_blocks(recognise(make(content, name))))
        assert len(blocks) > 2
        assert [word for block in blocks for word in block.words] == WORDS
        np.testing.assert_array_equal(np.concatenate([block.rows for block in blocks]), VECTORS)


BAD = {
    "empty": ("", "is empty"),
    "blank": ("\n \n", "is empty"),
    "prose": ("It was a dark\nand stormy night\n", "line 1 is not a word vector: 'It was a dark'"),
    "short line": ("a 1 2 3\nb 1 2\nc 1 2 3\n", "line 2 has 2 numbers after its word, not 3"),
    "long line": ("a 1 2 3\nb 1 2 3\nc 1 2 3 4\n", "line 3 has 4 numbers after its word, not 3"),
    "short line after a header": ("2 3\na 1 2\nb 1 2 3\n", "line 2 has 2 numbers after its word, not 3"),
    "only a word": ("a 1 2\nb\nc 1 2\n", "line 2 has 0 numbers"),
    "no number": ("a 1 2 3\nb 1 x 3\nc 1 2 3\n", "line 2: 'x' is not a number"),
    "decimal comma": ("a 1.5 2.5\nb 1,5 2,5\nc 1 2\n", "line 2: '1,5' is not a number"),
    "NaN": ("a 1 2 3\nb 1 nan 3\n", "line 2: the vector of 'b' holds values that are not finite"),
    "infinity": ("a 1 2 3\nb 1 1e300 3\n", "line 2: the vector of 'b' holds values that are not finite"),
    "truncated": ("3 2\na 1 2\nb 1 2\n", "promises 3 words, but 2 follow; the file is truncated"),
    "header alone": ("3 2\n", "holds no vectors"),
    "too many": ("1 2\na 1 2\nb 1 2\n", "promises 1 words, but 2 follow; correct that line"),
    "nothing promised": ("0 5\n", "promises 0 words"),
    "latin 1": (b"a 1 2\ncaf\xe9 1 2\n", "line 2 is not UTF-8"),
    "latin 1 after a header": (b"2 2\na 1 2\ncaf\xe9 1 2\n", "line 3 is not UTF-8"),
    "truncated binary": (binary()[:-3], "ends in the middle of word number 8 of 8; the file is truncated"),
    "binary cut in a word": (binary()[: binary().index(b"Stra") + 2], "in the middle of word number 5 of 8"),
    "binary that goes on": (binary() + b"more", "continues after the 8 words"),
    "binary NaN": (binary(vectors=VECTORS * np.nan), "the vector of 'the' holds values that are not finite"),
    "binary without words": (b"9 5\n" + bytes(100_000), "no word where number 1 should begin"),
    "fastText model": ((793712314).to_bytes(4, "little") + bytes(100), "a whole fastText model"),
    "something else": (b"\x89HDF\r\n\x1a\n" + bytes(100), "is not a word vector"),
    "truncated gzip": (gzip.compress(GLOVE.encode())[:-9], "truncated"),
    "no gzip": (b"hello", "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_sentence(make, cache, name):
    content, message = BAD[name]
    path = make(content, "x.txt.gz" if "gzip" in name else "x.bin" if "binary" in name else "x.txt")
    with pytest.raises(FormatError, match=r"^[^\n]*$") as caught:
        open_vectors(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert not cache.exists() or not any(cache.iterdir())


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        open_vectors(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("matrix", "words", "message"),
    [
        (VECTORS[0], "a\n", "expected a matrix of floats"),
        (VECTORS.astype(np.int32), "a\n", "expected a matrix of floats"),
        (VECTORS[:0], "", "expected a matrix of floats"),
        (VECTORS[:2], "a\n", "has 1 words, but"),
        (VECTORS[:2], "a\nb\nc\n", "has 3 words, but"),
        (VECTORS[:2] * np.inf, "a\nb\n", "not finite"),
        (np.array([["a"]], dtype=object), "a\n", "cannot be read as NumPy"),
        (VECTORS[:2], None, "x.vocab, x.vocab.txt or vocab.txt beside it; there is no such file"),
    ],
)
def test_a_bad_matrix_is_refused(tmp_path, matrix, words, message):
    np.save(tmp_path / "x.npy", matrix)
    if words is not None:
        (tmp_path / "x.vocab").write_text(words)
    with pytest.raises(FormatError, match=message):
        open_vectors(tmp_path / "x.npy")


def test_a_vocabulary_beside_a_file_with_words_is_refused(make):
    with pytest.raises(FormatError, match="holds its own words"):
        open_vectors(make(GLOVE), vocabulary="words.txt")


def test_the_second_time_nothing_is_parsed(make, monkeypatch):
    path = make(GLOVE)
    first = open_vectors(path)
    monkeypatch.setattr("polyseme.formats.vectors.read_blocks", None)
    again = open_vectors(path)
    assert first.path == again.path
    assert words_of(again) == WORDS
    np.testing.assert_array_equal(again.vectors, VECTORS)


def test_a_changed_file_is_read_anew(make, cache):
    open_vectors(make("a 1 2\nb 3 4\n"))
    path = make("a 5 6\nb 7 8\n")
    os.utime(path, ns=(1, 1))
    assert open_vectors(path).vectors.tolist() == [[5, 6], [7, 8]]
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"", lambda data: b"x" * len(data)])
def test_a_damaged_cache_is_made_anew(make, damage):
    path = make(GLOVE)
    kept = open_vectors(path).path
    kept.write_bytes(damage(kept.read_bytes()))
    np.testing.assert_array_equal(open_vectors(path).vectors, VECTORS)


def test_where_nothing_can_be_kept_vectors_are_in_memory(make, tmp_path, monkeypatch):
    path = make(GLOVE)
    (tmp_path / "file").write_text("")
    for folder in (False, tmp_path / "file" / "below"):
        opened = open_vectors(path, cache=folder)
        assert opened.path is None
        assert words_of(opened) == WORDS
        np.testing.assert_array_equal(opened.vectors, VECTORS)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert open_vectors(path, cache=tmp_path / "other").path is None
    assert list((tmp_path / "other").iterdir()) == []


def test_the_cache_is_where_it_is_told_to_be(make, tmp_path, monkeypatch):
    path = make(GLOVE)
    assert open_vectors(path, cache=tmp_path / "here").path.parent == tmp_path / "here"
    monkeypatch.delenv("POLYSEME_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert open_vectors(path).path.parent == tmp_path / "xdg" / "polyseme" / "vectors"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert open_vectors(path).path.parent == tmp_path / "home" / ".cache" / "polyseme" / "vectors"


@pytest.mark.parametrize("dim", [2, 3])
def test_the_cache_is_plain_safetensors(make, dim):
    opened = open_vectors(make("".join(f"w{number} {'1.5 ' * dim}\n" for number in range(3))))
    arrays = load_file(opened.path)
    assert arrays["vectors"].shape == (3, dim)
    assert bytes(arrays["text"]) == b"w0w1w2"


@pytest.mark.parametrize("cache", [True, False])
def test_a_table_goes_to_another_process(make, cache):
    opened = pickle.loads(pickle.dumps(open_vectors(make(GLOVE), cache=cache)))
    assert opened.find(["bank"]).tolist() == [3]
    np.testing.assert_array_equal(opened.vectors, VECTORS)


def test_what_is_written_is_read_back_to_the_last_bit(tmp_path):
    path = tmp_path / "out.txt"
    vectors = np.concatenate([VECTORS, VECTORS * 1e-30, VECTORS * 1e30])
    words = [f"{word}{number}" for number in range(3) for word in WORDS]
    write(path, words, vectors, 5)
    opened = open_vectors(path)
    assert words_of(opened) == words
    np.testing.assert_array_equal(opened.vectors, vectors)


def test_gensim_reads_what_is_written(tmp_path):
    models = require("gensim.models", "static")
    write(tmp_path / "out.txt", WORDS, VECTORS, 5)
    read = models.KeyedVectors.load_word2vec_format(tmp_path / "out.txt")
    assert read.index_to_key == WORDS
    np.testing.assert_array_equal(read.vectors, VECTORS)


def test_gensim_writes_what_is_read(tmp_path):
    models = require("gensim.models", "static")
    vectors = models.KeyedVectors(5)
    vectors.add_vectors(WORDS, VECTORS)
    for name, is_binary in (("x.bin", True), ("x.txt", False)):
        vectors.save_word2vec_format(tmp_path / name, binary=is_binary)
        opened = open_vectors(tmp_path / name)
        assert words_of(opened) == WORDS
        np.testing.assert_array_equal(opened.vectors, VECTORS)


@pytest.mark.parametrize("word", ["", "two words", "tab\t", "line\n", "\ud800"])
def test_a_word_that_no_text_can_hold_is_refused(tmp_path, word):
    with pytest.raises(OutputError, match="cannot be written in a text file of vectors"):
        write(tmp_path / "out.txt", ["a", word], VECTORS[:2], 5)
    assert list(tmp_path.iterdir()) == []
