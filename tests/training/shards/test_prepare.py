"""Raw text to token shards: every word once, in order, in one part or the other."""

import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.errors import ConfigError, InputError, OutputError
from polyseme.text.corpus import read_sentences
from polyseme.training.shards import sources
from polyseme.training.shards import writer as shard_writer
from polyseme.training.shards.prepare import PrepareSettings, prepare
from polyseme.training.shards.sources import HeldOutRule, choose_rule, cut_units
from polyseme.training.shards.store import Shards
from polyseme.training.shards.writer import WordCounts

SHARED = Path(__file__).parents[4] / "shared"
ALL = {"tokenized": True, "held_out": 0}  # a sentence a line, none held out


def make(text, folder, workers=1, **choices):
    """Shards of a text, which lies beside them."""
    path = folder.parent / "text.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    reports = list(prepare(path, folder, PrepareSettings(**choices), workers))
    assert [report.finished for report in reports] == [False] * (len(reports) - 1) + [True]
    return Shards.open(folder)


def documents_of(shards):
    """The training part, as sentences of words."""
    documents = []
    for shard in shards:
        start, beginnings = 0, set(shard.documents.tolist())
        for end in [place for place, number in enumerate(shard.tokens) if number == 0]:
            if start in beginnings:
                documents.append([])
            documents[-1].append([shard.words[number] for number in shard.tokens[start:end]])
            start = end + 1
    return documents


def held_out_of(shards):
    return list(shards.held_out_documents())


def flat(lists):
    return list(chain.from_iterable(lists))


def as_text(documents):
    return "".join("".join(f"{' '.join(words)}\n" for words in document) + "\n" for document in documents)


def begins_00(document):
    text = "\n".join(" ".join(words) for words in document)
    return hashlib.sha256(text.encode()).hexdigest().startswith("00")


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of a few words, documents that are longer than a unit."""
    monkeypatch.setattr(sources, "CHUNK_BYTES", 30)
    monkeypatch.setattr(sources, "LONGEST_UNIT", 50)


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda word: word.split() == [word] and not word.startswith("\ufeff")
)
texts = st.lists(st.lists(st.lists(words, min_size=1, max_size=9), min_size=1, max_size=5), min_size=1, max_size=8)


@settings(deadline=None, max_examples=40)
@given(texts, st.integers(1, 40), st.integers(1, 120))
def test_any_text_comes_back_word_for_word(tmp_path_factory, documents, chunk, unit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "CHUNK_BYTES", chunk)
        patch.setattr(sources, "LONGEST_UNIT", unit)
        patch.setattr(os, "fsync", lambda _: None)  # of hundreds of files
        folder = tmp_path_factory.mktemp("text") / "shards"
        shards = make(as_text(documents), folder, max_sentence=4, shard_tokens=6, **ALL)
    cut = [[words[at : at + 4] for words in each for at in range(0, len(words), 4)] for each in documents]
    assert documents_of(shards) == cut
    assert all(len(shard.tokens) <= 6 for shard in shards)
    counted = Counter(word for document in documents for sentence in document for word in sentence)
    assert list(shards.word_counts()) == sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    assert shards.num_documents == len(documents)


@settings(deadline=None, max_examples=20)
@given(texts, st.sampled_from(["documents", "lines"]))
def test_a_sentence_is_in_one_part_or_the_other(tmp_path_factory, documents, unit):
    folder = tmp_path_factory.mktemp("text") / "shards"
    try:
        shards = make(as_text(documents), folder, tokenized=True, held_out=0.5, held_out_unit=unit)
    except InputError:  # all of it was held out
        return
    parts = documents_of(shards) + held_out_of(shards)
    assert Counter(tuple(words) for document in parts for words in document) == Counter(
        tuple(words) for document in documents for words in document
    )


def test_a_raw_text_is_read_as_everywhere_else(tmp_path):
    text = "“Mr. Smith can't come,” she\nsaid to the man in the door\nand went. Why?\n\nNobody knew. 他走了。我来了。\n"
    shards = make(text, tmp_path / "shards", held_out=0)
    assert flat(documents_of(shards)) == list(read_sentences(tmp_path / "text.txt", raw=True))
    assert shards.num_documents == 2


def test_capitals_can_be_given_up_after_sentences_were_found(tmp_path):
    shards = make("The Cat sat. The CAT İ went.\n", tmp_path / "shards", held_out=0, lowercase=True)
    assert documents_of(shards) == [[["the", "cat", "sat", "."], ["the", "cat", "i̇", "went", "."]]]
    assert dict(shards.word_counts())["cat"] == 2


def test_two_processes_make_what_one_makes(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 2000)
    documents = [[[f"w{number * number % 97}" for _ in range(number % 7 + 1)]] * 3 for number in range(400)]
    for name, workers in (("one", 1), ("two", 2)):
        make(as_text(documents), tmp_path / name, workers, tokenized=True, held_out=1 / 16, shard_tokens=500)
    indices = [json.loads((tmp_path / name / "index.json").read_bytes()) for name in ("one", "two")]
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).glob("*.[!j]*")} for name in ("one", "two"))
    assert len(one) > 12
    assert one == two
    assert [index.pop("inputs") for index in indices]
    assert indices[0] == indices[1]


def test_a_worker_imports_no_torch():
    code = "import sys; import polyseme.training.shards.encode, polyseme.training.doctor.examine\n"
    code += "import polyseme.training.shards.prepare\n"
    code += "assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# The held-out part


def test_documents_whose_hash_begins_with_00_are_held_out_at_one_in_256(tmp_path):
    documents = [[["document", str(number)], ["of", "two"]] for number in range(3000)]
    shards = make(as_text(documents), tmp_path / "shards", tokenized=True, held_out=1 / 256)
    expected = [document for document in documents if begins_00(document)]
    assert len(expected) > 5
    assert held_out_of(shards) == expected
    assert documents_of(shards) == [document for document in documents if not begins_00(document)]
    assert shards.index["rule"] == {"share": 1 / 256, "lines": None}


def test_the_rule_is_the_one_of_the_published_corpus(tmp_path):
    path = SHARED / "corpora" / "en" / "wikipedia-04.txt.xz"
    if not path.exists():
        pytest.skip("needs ../shared/corpora/en/wikipedia-04.txt.xz")
    with lzma.open(path) as file:
        text = file.read(3_000_000).decode("utf-8", "ignore")
    shards = make(text, tmp_path / "shards", tokenized=True, held_out=1 / 256, held_out_unit="documents")
    documents = [document.strip("\n") for document in text.split("\n\n")]
    chosen = [each for each in documents if hashlib.sha256(each.encode()).hexdigest().startswith("00")]
    assert chosen
    assert [flat(document) for document in held_out_of(shards)] == [each.split() for each in chosen]


def test_without_documents_stretches_of_lines_are_held_out(tmp_path):
    sentences = [["sentence", str(number)] for number in range(8000)]
    shards = make(as_text([sentences]), tmp_path / "shards", tokenized=True, held_out=0.05)
    assert shards.index["rule"] == {"share": 0.05, "lines": 20}
    rule = HeldOutRule(0.05)
    stretches = [sentences[start : start + 20] for start in range(0, 8000, 20)]
    chosen = [each for each in stretches if rule.holds("\n".join(map(" ".join, each)).encode())]
    held_out = held_out_of(shards)
    assert flat(held_out) == flat(chosen)
    assert all(len(document) % 20 == 0 for document in held_out)
    assert shards.num_documents == len(held_out) + 1  # a gap begins a document, since nothing leads over it


def test_a_small_text_holds_out_more_and_in_smaller_pieces():
    small, single = (["a b c d e"] * lines for lines in (1_000, 1))
    assert choose_rule(small, False, 0, None, "auto") == HeldOutRule(1 / 20, 2)
    assert choose_rule(single, False, 0, None, "auto") == HeldOutRule(1 / 20, 1)
    middle = ["a b c d e", ""] * 200_000
    assert choose_rule(middle, False, 0, None, "auto") == HeldOutRule(pytest.approx(1 / 50, rel=0.01))
    assert choose_rule(middle, False, 0, None, "lines") == HeldOutRule(pytest.approx(1 / 50, rel=0.01), 20)


def test_a_large_text_holds_out_one_in_256(monkeypatch):
    monkeypatch.setattr(sources, "SAMPLE", 1000)
    sample = ["a b c d e"] * 99 + ["", "a b c d e"]
    assert choose_rule(sample, False, 10**9, None, "auto") == HeldOutRule(1 / 256)
    assert choose_rule(sample, False, 10**5, None, "auto") == HeldOutRule(1 / 256, 1)


def test_all_of_a_long_document_goes_where_its_beginning_goes(small_chunks):
    lines = [f"{number} {number}" for number in range(100)]
    for share in (0.3, 0.9):
        cut = list(cut_units([*lines, ""], HeldOutRule(share)))
        assert len(cut) > 5
        assert len({unit.held_out for unit in cut}) == 1
        assert [unit.starts for unit in cut] == [True] + [False] * (len(cut) - 1)


def test_files_to_measure_with_are_not_trained_on(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text(f"only {name}\n")
    chosen = PrepareSettings(tokenized=True, held_out_from=(str(tmp_path / "b.txt"),))
    list(prepare(tmp_path / "*.txt", tmp_path / "shards", chosen))
    shards = Shards.open(tmp_path / "shards")
    assert flat(documents_of(shards)) == [["only", "a"], ["only", "c"]]
    assert held_out_of(shards) == [[["only", "b"]]]


# Once made, made


def stamps(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_the_same_text_is_not_read_again(tmp_path, monkeypatch):
    make("a b\nc\n", tmp_path / "shards", **ALL)
    before = stamps(tmp_path / "shards")
    (report,) = prepare(tmp_path / "text.txt", tmp_path / "shards", PrepareSettings(**ALL))
    assert (report.finished, report.reused, report.tokens, report.sentences) == (True, True, 5, 2)
    monkeypatch.chdir(tmp_path)
    (report,) = prepare("text.txt", "shards", PrepareSettings(**ALL))
    assert report.reused
    assert stamps(tmp_path / "shards") == before


def change_text(folder):
    (folder.parent / "text.txt").write_text("x y\nz\n")


def change_time(folder):
    os.utime(folder.parent / "text.txt", ns=(1, 1))


def damage(folder):
    (folder / "00000.tokens").write_bytes(b"")


def lose_index(folder):
    (folder / "index.json").unlink()


@pytest.mark.parametrize("change", [change_text, change_time, damage, lose_index])
def test_what_has_changed_is_made_anew(tmp_path, change):
    make("a b\nc\n", tmp_path / "shards", **ALL)
    change(tmp_path / "shards")
    *_, report = prepare(tmp_path / "text.txt", tmp_path / "shards", PrepareSettings(**ALL))
    assert not report.reused
    sentences = [line.split() for line in (tmp_path / "text.txt").read_text().splitlines()]
    assert documents_of(Shards.open(tmp_path / "shards")) == [sentences]


def test_other_settings_make_it_anew(tmp_path):
    make("A b\nc\n", tmp_path / "shards", **ALL)
    assert make("A b\nc\n", tmp_path / "shards", lowercase=True, **ALL)[0].words[1:] == ["a", "b", "c"]


def test_standard_input_is_read_and_always_anew(tmp_path, monkeypatch):
    for text in ("a b\n", "a b\n", "c\n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
        *_, report = prepare("-", tmp_path / "shards", PrepareSettings(**ALL), workers=1)
        assert not report.reused
        assert report.bytes_total is None
        assert documents_of(Shards.open(tmp_path / "shards")) == [[text.split()]]


def test_the_output_may_lie_among_the_inputs(tmp_path):
    (tmp_path / "a.txt").write_text("a b\n")
    for expected in (False, True):
        *_, report = prepare(tmp_path, tmp_path / "shards", PrepareSettings(**ALL))
        assert report.reused == expected
    assert documents_of(Shards.open(tmp_path / "shards")) == [[["a", "b"]]]


def test_somebody_elses_folder_is_not_overwritten(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.json").write_text("{}")
    (tmp_path / "site" / "page.html").touch()
    with pytest.raises(OutputError, match="not overwritten"):
        make("a b\n", tmp_path / "site", **ALL)
    assert (tmp_path / "site" / "page.html").exists()


# What goes wrong


@pytest.mark.parametrize("text", ["", "\n\n \n", "\u200b\n"])
def test_a_text_without_words_is_refused_and_leaves_nothing(tmp_path, text):
    with pytest.raises(InputError, match="no words to train on"):
        make(text, tmp_path / "shards", held_out=0)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a binary file"),
        ("a.txt", b"one\ntw\xf6\n", "line 2 is not UTF-8"),
        ("a.txt.gz", gzip.compress(b"".join(b"%d\n" % number**7 for number in range(9000)))[:20_000], "truncated"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_broken_file_is_refused_and_leaves_nothing(tmp_path, monkeypatch, name, content, message, workers):
    monkeypatch.setattr(sources, "SAMPLE", 100)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(prepare(tmp_path / name, tmp_path / "shards", workers=workers))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        list(prepare(tmp_path / "none", tmp_path / "shards"))


def test_one_giant_line_is_cut_and_nothing_is_lost(tmp_path):
    sentence = [str(number % 5000) for number in range(100_000)]
    shards = make(" ".join(sentence), tmp_path / "shards", shard_tokens=20_000, **ALL)
    assert len(shards) == 6
    assert flat(flat(documents_of(shards))) == sentence
    assert (shards.num_sentences, shards.index["sentences_cut"]) == (250, 1)


def test_text_of_nothing_but_new_words_makes_more_shards(tmp_path, monkeypatch, small_chunks):
    monkeypatch.setattr(shard_writer, "SHARD_WORDS", 50)
    shards = make("".join(f"w{number} x{number}\n" for number in range(200)), tmp_path / "shards", **ALL)
    assert len(shards) > 5
    assert all(len(shard.words) < 70 for shard in shards)
    assert len(flat(documents_of(shards))) == 200


def test_a_full_disk_is_told_and_keeps_what_was_there(tmp_path, monkeypatch):
    make("a b\n", tmp_path / "shards", **ALL)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.write_bytes", full)
        (tmp_path / "text.txt").write_text("c d\n")
        with pytest.raises(OutputError, match="No space left on device"):
            list(prepare(tmp_path / "text.txt", tmp_path / "shards", PrepareSettings(**ALL)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shards", "text.txt"]
    assert documents_of(Shards.open(tmp_path / "shards")) == [[["a", "b"]]]


def test_who_stops_half_way_leaves_nothing(tmp_path, small_chunks):
    (tmp_path / "text.txt").write_text("a b c\n" * 100)
    going = prepare(tmp_path / "text.txt", tmp_path / "shards", PrepareSettings(**ALL))
    assert not next(going).finished
    assert (tmp_path / ".shards.unfinished").is_dir()
    going.close()
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


KILLED = """
import os, pathlib, signal, sys
from polyseme.training.shards.prepare import PrepareSettings, prepare

def deadly(*_):
    os.kill(os.getpid(), signal.SIGKILL)

module = {"fsync": os, "rename": pathlib.Path}[sys.argv[3]]
setattr(module, sys.argv[3], deadly)
list(prepare(sys.argv[1], sys.argv[2], PrepareSettings(tokenized=True, held_out=0)))
"""


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_killed_run_leaves_nothing_that_looks_finished(tmp_path, call):
    (tmp_path / "text.txt").write_text("a b\n")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "text.txt"), str(tmp_path / "shards"), call]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "shards").exists()
    *_, report = prepare(tmp_path / "text.txt", tmp_path / "shards", PrepareSettings(**ALL))
    assert not report.reused
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shards", "text.txt"]


@pytest.mark.parametrize(
    "choices",
    [
        {"held_out": 1},
        {"held_out": -0.1},
        {"held_out": 0.1, "held_out_from": ("a",)},
        {"held_out_unit": "pages"},
        {"max_sentence": 0},
        {"max_types": 3},
        {"shard_tokens": 400},
        {"shard_tokens": 1 << 31},
    ],
)
def test_settings_that_make_no_sense_are_refused(choices):
    with pytest.raises(ConfigError):
        PrepareSettings(**choices)


def test_no_worker_is_too_few(tmp_path):
    with pytest.raises(ConfigError, match="at least 1"):
        make("a b\n", tmp_path / "shards", workers=0, **ALL)


@given(st.lists(st.lists(st.integers(0, 30), max_size=60), max_size=12), st.integers(4, 12))
def test_forgotten_words_are_counted_too_low_by_no_more_than_is_said(chunks, max_types):
    counts, truth = WordCounts(max_types), Counter()
    for chunk in chunks:
        found = Counter(map(str, chunk))
        counts.add(list(found), list(found.values()))
        truth += found
        assert len(counts.counts) <= max_types
    for word, count in truth.items():
        assert count - counts.error <= counts.counts.get(word, 0) <= count
    if len(truth) <= max_types:
        assert (counts.error, counts.counts) == (0, dict(truth))
