"""Text out of files."""

import bz2
import gzip
import importlib.util
import io
import lzma
import sys
import textwrap
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import InputError, MissingExtraError
from polyseme.text import corpus
from polyseme.text.corpus import expand, open_text, read_sentences

COMPRESS = {".txt": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
if importlib.util.find_spec("zstandard"):
    import zstandard

    COMPRESS[".zst"] = zstandard.compress

PROSE = (
    "It was the best of times, it was the worst of times, said Mr. Dickens, and went on to say that it was "
    "the age of wisdom and the age of foolishness. Nobody in the U.S. objected to this opening of his."
)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines_of(path):
    with open_text(path) as lines:
        return list(lines)


def refusal(path):
    with pytest.raises(InputError) as refused:
        lines_of(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_or_not_the_lines_are_the_same(tmp_path, suffix):
    path = write(tmp_path / f"a{suffix}", COMPRESS[suffix]("eins\nzwölf\n\nlast".encode()))
    assert lines_of(path) == ["eins", "zwölf", "", "last"]


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix != ".txt"])
def test_several_compressed_parts_are_one_text(tmp_path, suffix):
    part = COMPRESS[suffix](b"a\nb")
    assert lines_of(write(tmp_path / f"a{suffix}", part + part)) == ["a", "ba", "b"]


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix != ".txt"])
@pytest.mark.parametrize("damage", ["first byte", "checksum", "truncated", "garbage", "odd padding", "one byte"])
def test_damage_after_the_first_compressed_part_is_refused(tmp_path, suffix, damage):
    part = COMPRESS[suffix](b"".join(b"%d\n" % number**7 for number in range(500)))
    second = {
        "first byte": bytes([part[0] ^ 1]) + part[1:],
        "checksum": part[:-3] + bytes([part[-3] ^ 1]) + part[-2:],
        "truncated": part[:-9],
        "garbage": b"garbage, and more of it",
        "odd padding": b"\0\0\0x",
        "one byte": b"x",
    }[damage]
    if (suffix, damage) == (".zst", "checksum"):
        pytest.skip("zstandard.compress writes no checksum")
    refusal(write(tmp_path / f"a{suffix}", part + second))


@pytest.mark.parametrize(("suffix", "zeros"), [(".xz", 4), (".xz", 4 << 16), (".gz", 5), (".gz", 512)])
def test_padding_that_the_format_allows_is_none_of_the_text(tmp_path, suffix, zeros):
    part, padding = COMPRESS[suffix](b"a\nb\n"), bytes(zeros)
    assert lines_of(write(tmp_path / f"a{suffix}", part + padding + part + padding)) == ["a", "b", "a", "b"]


def test_padding_that_the_format_forbids_is_refused(tmp_path):
    assert "multiples of four" in refusal(write(tmp_path / "a.xz", lzma.compress(b"a") + bytes(5)))
    refusal(write(tmp_path / "a.bz2", bz2.compress(b"a") + bytes(4)))


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix != ".txt"])
def test_a_compressed_file_of_no_bytes_is_truncated(tmp_path, suffix):
    refusal(write(tmp_path / f"a{suffix}", b""))


def test_a_stream_without_a_checksum_is_refused_in_an_xz_file(tmp_path):
    refusal(write(tmp_path / "a.xz", lzma.compress(b"a\n") + lzma.compress(b"b\n", lzma.FORMAT_ALONE)))


def test_a_skippable_frame_of_zstd_is_skipped(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    skipped = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    part = zstandard.compress(b"a\n")
    assert lines_of(write(tmp_path / "a.zst", part + skipped + part)) == ["a", "a"]


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix != ".txt"])
def test_a_bomb_is_refused_at_its_first_line_in_little_memory(tmp_path, suffix):
    path = write(tmp_path / f"a{suffix}", COMPRESS[suffix](bytes((100 if suffix == ".zst" else 17) << 20)))
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        assert "line 1 has over 16,777,216 bytes" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


def test_an_xz_file_that_asks_for_gigabytes_is_refused(tmp_path):
    content = bytearray(lzma.compress(b"a\n"))
    place = content.index(bytes([0x21, 0x01])) + 2  # LZMA2's one property: the size of its dictionary
    content[place] = 40  # 4 GiB
    header = content[12:24]
    content[20:24] = zlib.crc32(header[:8]).to_bytes(4, "little")
    assert "cannot be read: Memory usage limit" in refusal(write(tmp_path / "a.xz", bytes(content)))


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix != ".txt"])
def test_a_truncated_file_is_refused(tmp_path, suffix):
    whole = COMPRESS[suffix](b"".join(b"%d\n" % number**7 for number in range(5000)))
    assert "truncated" in refusal(write(tmp_path / f"a{suffix}", whole[: len(whole) // 2]))


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix != ".txt"])
def test_a_file_that_is_not_compressed_as_its_name_says_is_refused(tmp_path, suffix):
    assert "cannot be read" in refusal(write(tmp_path / f"a{suffix}", "just text, as anybody may write it\n"))


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"polyseme\[zstd\]"):
        lines_of(write(tmp_path / "a.zst", b""))


def test_standard_input_is_a_file_and_stays_open(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO("\ufeffgrün\r\n".encode()))))
    assert list(read_sentences("-", raw=False)) == [["grün"]]
    assert not sys.stdin.closed


@pytest.mark.parametrize("other", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85", "\r"])
def test_a_line_ends_at_a_newline_only(tmp_path, other):
    assert lines_of(write(tmp_path / "a", f"a{other}b\r\nc\r\n")) == [f"a{other}b", "c"]


def test_a_byte_order_mark_is_dropped_at_the_start_only(tmp_path):
    assert lines_of(write(tmp_path / "a", "\ufeffa\n\ufeffb\n")) == ["a", "\ufeffb"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"))))
def test_lines_come_back_as_written(tmp_path_factory, lines):
    path = write(tmp_path_factory.mktemp("lines") / "a", "".join(f"x{line}\n" for line in lines))
    assert lines_of(path) == [f"x{line}" for line in lines]


def test_bytes_that_are_not_utf8_are_refused_by_line_and_offset(tmp_path):
    message = refusal(write(tmp_path / "a", b"one\ntw\xf6\n"))
    assert "(byte 0xf6, byte 3 of the line, 3 of the file)" in refusal(write(tmp_path / "b", b"\xef\xbb\xbf\xf6\n"))
    for part in ("line 2", "0xf6", "byte 2 of the line", "6 of the file", "iconv"):
        assert part in message


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\x89HDF\r\n\x1a\n\0\0", "grün".encode("utf-16")]
)
def test_a_binary_file_is_called_one(tmp_path, content):
    assert "a binary file, or text in UTF-16" in refusal(write(tmp_path / "a", content))


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert "no such file" in refusal(tmp_path / "none")
    assert "is a folder" in refusal(tmp_path)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "LONGEST_LINE", 100)
    assert lines_of(write(tmp_path / "a", "x" * 99 + "\n")) == ["x" * 99]
    assert "line 2 has over 100 bytes" in refusal(write(tmp_path / "a", "\n" + "x" * 101))


def test_an_error_of_the_reader_is_left_alone(tmp_path):
    with pytest.raises(FileNotFoundError, match="mine"), open_text(write(tmp_path / "a", "a")):
        raise FileNotFoundError("mine")


def test_folders_and_patterns_stand_for_their_files(tmp_path):
    for name in ("b.txt", "a.txt", "sub/c.txt", ".hidden", ".git/x.txt"):
        write(tmp_path / name, name)
    a, b, c = (tmp_path / name for name in ("a.txt", "b.txt", "sub/c.txt"))
    assert expand([tmp_path]) == [a, b, c]
    assert expand(str(tmp_path / "*")) == [a, b, c]
    assert expand([tmp_path / "?.txt", "-", c]) == [a, b, "-", c]
    assert expand(tmp_path / "**" / "c.*") == [c]


def test_a_relative_pattern_works(tmp_path, monkeypatch):
    write(tmp_path / "a.txt", "a")
    monkeypatch.chdir(tmp_path)
    assert list(read_sentences(["*.txt"], raw=False)) == [["a"]]


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path):
    path = write(tmp_path / "a[1].txt", "a")
    assert expand(path) == [path]


@pytest.mark.parametrize("name", ["none.txt", "*.none", "empty"])
def test_nothing_found_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file below this folder" if name == "empty" else "no such file"):
        expand([tmp_path / name])


def test_an_empty_line_is_an_empty_sentence_where_lines_count(tmp_path):
    path = write(tmp_path / "a", "The cat\u00a0sat .\n\n \nOn it\n")
    assert list(read_sentences(path, raw=False)) == [["The", "cat", "sat", "."], [], [], ["On", "it"]]


def test_blank_lines_of_raw_text_give_nothing(tmp_path):
    path = write(tmp_path / "a", "\n\nThe cat sat. It slept.\n\n \n\nTitle\n")
    assert list(read_sentences(path, raw=True)) == [["The", "cat", "sat", "."], ["It", "slept", "."], ["Title"]]


@pytest.mark.parametrize("width", [30, 40, 72, 100, 1000])
def test_wrapped_text_reads_as_if_it_were_not(tmp_path, width):
    path = write(tmp_path / "a", textwrap.fill(PROSE, width) + "\n\n" + textwrap.fill(PROSE, width))
    once = list(read_sentences(write(tmp_path / "b", PROSE), raw=True))
    assert list(read_sentences(path, raw=True)) == once * 2


def test_a_paragraph_a_line_stays_one(tmp_path):
    path = write(tmp_path / "a", f"Heading\n{PROSE}\nAnother heading\n{PROSE}\n")
    first = [sentence[:2] for sentence in read_sentences(path, raw=True)]
    assert first == [
        ["Heading"],
        ["It", "was"],
        ["Nobody", "in"],
        ["Another", "heading"],
        ["It", "was"],
        ["Nobody", "in"],
    ]


def test_verse_and_lists_are_not_joined(tmp_path):
    path = write(tmp_path / "a", "milk and bread\neggs\na very long item of the list\nsalt\n")
    assert [sentence[0] for sentence in read_sentences(path, raw=True)][:3] == ["milk", "eggs", "a"]


def test_a_text_without_blank_lines_is_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "LARGEST_BLOCK", 100)
    path = write(tmp_path / "a", "The cat sat.\n" * 1000)
    assert list(read_sentences(path, raw=True)) == [["The", "cat", "sat", "."]] * 1000
