"""Words and their numbers."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import FormatError, InputError, OutputError
from polyseme.text.vocabulary import BOS, EOS, UNK, Vocabulary

SPECIAL = [BOS, EOS, UNK]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_words_and_numbers_are_two_ways_through_it():
    vocabulary = Vocabulary([*SPECIAL, "the", "cat"])
    assert [vocabulary.id(word) for word in vocabulary] == [0, 1, 2, 3, 4]
    assert [vocabulary.word(number) for number in range(5)] == list(vocabulary)
    assert len(vocabulary) == 5
    assert "cat" in vocabulary
    assert "dog" not in vocabulary


def test_an_unknown_word_has_the_number_of_unk():
    vocabulary = Vocabulary([*SPECIAL, "the"])
    assert vocabulary.id("dog") == 2
    assert vocabulary.encode(["the", "dog"]) == [3, 2]
    assert vocabulary.decode([3, 2]) == ["the", UNK]


@pytest.mark.parametrize("number", [-1, 4])
def test_a_number_without_a_word_is_refused(number):
    with pytest.raises(InputError, match="expected 0 to 3"):
        Vocabulary([*SPECIAL, "the"]).word(number)


def test_special_words_may_have_other_names_and_places():
    vocabulary = Vocabulary(["a", "<oov>", "<eos>", "<bos>"], bos="<bos>", eos="<eos>", unk="<oov>")
    assert vocabulary.encode(["x", vocabulary.bos, vocabulary.eos]) == [1, 3, 2]


word_lists = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1), unique=True
)


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.txt.gz"])
@given(words=word_lists)
def test_what_was_saved_is_loaded(tmp_path_factory, name, words):
    path = tmp_path_factory.mktemp("vocabulary") / name
    words = [word for word in words if word not in (*SPECIAL, "!!!MAXTERMID")]
    Vocabulary([*SPECIAL, *words]).save(path)
    assert list(Vocabulary.load(path)) == [*SPECIAL, *words]


def test_maxtermid_is_no_word_and_only_line_ends_are_taken_off(tmp_path):
    path = write(tmp_path / "v.txt", "</S>\r\n<S>\r\n<UNK>\r\n!!!MAXTERMID\r\n a\u00a0b \r\n\u2028\r\nlast")
    assert list(Vocabulary.load(path)) == [EOS, BOS, UNK, " a\u00a0b ", "\u2028", "last"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<S>\n</S>\n<UNK>\nthe\nthe\n", "line 5: found 'the' a second time"),
        ("<S>\n</S>\n<UNK>\n!!!MAXTERMID\n\nthe\n", "line 5: found an empty word"),
        ("<S>\nthe\n<UNK>\n", "line 3: the words lack '</S>'"),
        ("", "lack '<S>'"),
        (b"<S>\n</S>\n<UNK>\ncaf\xe9\n", "line 4 is not UTF-8"),
    ],
)
def test_a_broken_file_is_refused_by_path_and_line(tmp_path, content, message):
    path = write(tmp_path / "v.txt", content)
    with pytest.raises(FormatError, match=message) as refused:
        Vocabulary.load(path)
    assert str(refused.value).startswith(f"{path}: ")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        Vocabulary.load(tmp_path / "none.txt")


@pytest.mark.parametrize("word", ["", "a\nb", "a\r", "!!!MAXTERMID", UNK])
def test_a_word_that_no_file_can_hold_is_refused(word):
    with pytest.raises(InputError, match="expected distinct words"):
        Vocabulary([*SPECIAL, word])


def test_saving_replaces_the_old_file_and_leaves_nothing_beside_it(tmp_path):
    path = write(tmp_path / "v.txt", "old")
    Vocabulary(SPECIAL).save(path)
    assert path.read_text() == "<S>\n</S>\n<UNK>\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_keeps_the_old_file(tmp_path):
    path = write(tmp_path / "v.txt", "old")
    with pytest.raises(OutputError, match="not valid Unicode"):
        Vocabulary([*SPECIAL, "\ud800"]).save(path)
    assert path.read_text() == "old"


def test_saving_where_there_is_no_folder_is_refused(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        Vocabulary(SPECIAL).save(tmp_path / "none" / "v.txt")


def test_a_gzipped_file_is_the_same_each_time(tmp_path):
    for name in ("a.gz", "b.gz"):
        Vocabulary(SPECIAL).save(tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"<S>\n</S>\n<UNK>\n"
