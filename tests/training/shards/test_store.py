"""Token shards: what is opened is what was made, or is refused."""

import json

import numpy as np
import pytest

from polyseme.errors import FormatError, InputError
from polyseme.text.vocabulary import BOS, EOS, UNK
from polyseme.training.shards.prepare import PrepareSettings, prepare
from polyseme.training.shards.store import Shards

TEXT = "the cat sat\nthe dog\n\nthe cat <S>\n"
MEASURE = "a b c\nd e\nf\n\ng h\ni\n"


@pytest.fixture
def folder(tmp_path):
    """Two shards to train on, and two to measure with."""
    (tmp_path / "text").write_text(TEXT, "utf-8")
    (tmp_path / "measure").write_text(MEASURE, "utf-8")
    settings = PrepareSettings(
        tokenized=True, max_sentence=4, shard_tokens=7, held_out_from=(str(tmp_path / "measure"),)
    )
    list(prepare(tmp_path / "text", tmp_path / "shards", settings))
    return tmp_path / "shards"


def test_a_shard_numbers_its_own_words_by_falling_count(folder):
    first, second = (Shards.open(folder)[number] for number in range(2))
    assert first.words == ["", "the", "cat", "sat", "dog"]
    assert first.tokens.tolist() == [1, 2, 3, 0, 1, 4, 0]
    assert first.documents.tolist() == [0]
    assert second.words == ["", "the", "cat", "<S>"]
    assert second.tokens.tolist() == [1, 2, 3, 0]
    assert second.documents.tolist() == [0]


def test_how_much_there_is(folder):
    shards = Shards.open(folder)
    assert (len(shards), shards.num_tokens, shards.num_words) == (2, 11, 8)
    assert (shards.num_sentences, shards.num_documents) == (3, 2)
    assert shards.training.characters == len(TEXT.replace("\n\n", "\n"))
    assert shards.held_out.characters == len(MEASURE.replace("\n\n", "\n"))
    assert shards.index["count_error"] == 0


def test_tokens_are_mapped_and_cannot_be_written(folder):
    tokens = Shards.open(folder)[0].tokens
    assert isinstance(tokens, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 1


def test_the_vocabulary_counts_sentences_as_boundaries_and_all_the_rest_as_unknown(folder):
    shards = Shards.open(folder)
    words, counts = shards.vocabulary()
    assert list(words) == [BOS, EOS, UNK, "the", "cat", "dog", "sat"]
    assert counts.tolist() == [3, 3, 1, 3, 2, 1, 1]  # a literal <S> is no word
    words, counts = shards.vocabulary(max_size=4)
    assert (list(words), counts.tolist()) == ([BOS, EOS, UNK, "the"], [3, 3, 5, 3])
    assert list(shards.vocabulary(min_count=2)[0]) == [BOS, EOS, UNK, "the", "cat"]
    assert (folder / "vocabulary.tsv").read_text() == "the\t3\ncat\t2\n<S>\t1\ndog\t1\nsat\t1\n"


def test_a_vocabulary_without_room_is_refused(folder):
    with pytest.raises(InputError, match="got 3"):
        Shards.open(folder).vocabulary(max_size=3)


def test_held_out_documents_come_whole_over_several_shards(folder):
    shards = Shards.open(folder)
    assert len(shards.held_out.shards) == 2
    assert list(shards.held_out_documents()) == [[list("abc"), list("de"), ["f"]], [list("gh"), ["i"]]]


@pytest.mark.parametrize(
    ("limit", "documents"), [(0, []), (3, []), (4, [[list("abc")]]), (8, [[list("abc"), list("de")]]), (99, None)]
)
def test_fewer_held_out_tokens_can_be_asked_for(folder, limit, documents):
    shards = Shards.open(folder)
    expected = list(shards.held_out_documents()) if documents is None else documents
    assert list(shards.held_out_documents(limit)) == expected


@pytest.mark.parametrize(
    "name", ["00000.tokens", "00001.words", "00000.documents", "vocabulary.tsv", "held-out-00000.tokens"]
)
@pytest.mark.parametrize("damage", ["cut", "longer", "gone"])
def test_a_file_of_another_size_is_refused_on_opening(folder, name, damage):
    path = folder / name
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] if damage == "cut" else path.read_bytes() + b"\n")
    with pytest.raises(FormatError, match="prepare the text again") as refused:
        Shards.open(folder)
    assert name in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("00000.tokens", np.array([1, 2, 3, 0, 1, 5, 0], "<i4").tobytes()),
        ("00000.tokens", np.array([1, 2, 3, 0, 1, -1, 0], "<i4").tobytes()),
        ("00000.tokens", np.array([1, 2, 3, 0, 1, 4, 4], "<i4").tobytes()),
        ("00000.words", b"the\ncat\nsat dog\n"),
        ("00000.words", b"the\ncat\nsat\ndo\xff\n"),
    ],
)
def test_a_shard_that_was_changed_is_refused_when_it_is_read(folder, name, content):
    assert len(content) == (folder / name).stat().st_size
    (folder / name).write_bytes(content)
    with pytest.raises(FormatError, match="prepare the text again"):
        Shards.open(folder)[0]


def test_a_vocabulary_that_was_changed_is_refused_when_it_is_read(folder):
    (folder / "vocabulary.tsv").write_text("the\t3\ncat\t2\n<S>\t1\ndog 1\nsat\t1\n")
    with pytest.raises(FormatError, match="'dog 1"):
        Shards.open(folder).vocabulary()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not an index of shards"),
        ('{"polyseme shards": 99}', "not an index of shards"),
        ('{"polyseme shards": 1, "training": {}}', "is damaged"),
        ('{"polyseme shards": 1, "training": {"tokens": 3}, "held_out": {}}', "is damaged"),
    ],
)
def test_a_broken_index_is_refused(folder, content, message):
    (folder / "index.json").write_text(content)
    with pytest.raises(FormatError, match=message):
        Shards.open(folder)


def test_a_folder_without_shards_is_refused(tmp_path):
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(FormatError, match=r"there is no index\.json in it"):
            Shards.open(place)


def test_the_index_says_what_it_was_made_from(folder):
    index = json.loads((folder / "index.json").read_text())
    text = folder.parent / "text"
    assert index["inputs"][0] == {
        "held_out": False,
        "path": str(text),
        "size": len(TEXT),
        "mtime_ns": text.stat().st_mtime_ns,
    }
    assert index["settings"]["shard_tokens"] == 7
