import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import FormatError
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_encoder import ByteCharacters, DictionaryCharacters, WordEncoder, published_ids

PUBLISHED = ByteCharacters(whole_characters=False, literal_boundaries=True)
MARKS = ("<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>")


def test_a_word_is_its_bytes_between_begin_and_end():
    assert PUBLISHED.encode("ab") == [258, 97, 98, 259]
    assert PUBLISHED.encode("é") == [258, 0xC3, 0xA9, 259]
    assert PUBLISHED.encode("") == [258, 259]


def test_boundaries_are_words_of_one_id():
    assert PUBLISHED.encode_boundary(opening=True) == [258, 256, 259]
    assert PUBLISHED.encode_boundary(opening=False) == [258, 257, 259]


def test_published_models_take_literal_boundaries_and_ours_spell_them():
    assert PUBLISHED.encode("<S>") == [258, 256, 259]
    assert PUBLISHED.encode("</S>") == [258, 257, 259]
    assert ByteCharacters().encode("<S>") == [258, *b"<S>", 259]


def test_published_ids_are_one_higher_and_zero_for_no_word():
    ids = published_ids([["ab"], ["c", "d"]])
    assert ids.shape == (2, 2, 50)
    assert ids[0, 0].tolist() == [259, 98, 99, 260] + [261] * 46
    assert not ids[0, 1].any()


def test_the_limit_is_the_models():
    assert ByteCharacters(5).encode("abcdef") == [258, 97, 98, 99, 259]
    assert published_ids([["abcdef"]], max_characters=5).tolist() == [[[259, 98, 99, 100, 260]]]


def test_published_models_may_halve_a_character_and_ours_never_do():
    word = "a" * 47 + "é"
    assert len(PUBLISHED.encode(word)) == 50
    assert ByteCharacters().encode(word) == [258, *b"a" * 47, 259]


def test_lone_surrogates_vanish():
    assert PUBLISHED.encode("a\ud800b") == [258, 97, 98, 259]


@given(st.text(max_size=80), st.integers(5, 60), st.booleans())
def test_any_string_is_spelt_within_the_limit(word, limit, whole):
    characters = ByteCharacters(limit, whole)
    spelling = characters.encode(word)
    assert len(spelling) <= limit
    assert all(0 <= number < characters.size for number in spelling)
    whole_word = word.encode("utf-8", "ignore")
    assert characters.crops(word) == (len(whole_word) > limit - 2)
    if whole:
        assert word.encode("utf-8", "ignore").startswith(bytes(spelling[1:-1]))
        bytes(spelling[1:-1]).decode("utf-8")


def test_a_dictionary_spells_by_characters_and_may_be_swapped():
    plain = DictionaryCharacters((*MARKS, "a", "好"), max_characters=7)
    assert plain.encode("a好z") == [4, 6, 7, 2, 5]
    assert plain.encode("aaaaaa") == [4, 6, 6, 6, 6, 6, 5]
    assert plain.crops("aaaaaa")
    assert not plain.crops("aaaaa")
    assert plain.encode("<bos>") == plain.encode("<bos>x") == plain.encode_boundary(opening=True) == [4, 0, 5]
    assert DictionaryCharacters((*MARKS, "a"), swapped=True).encode("a") == [5, 6, 4]


def test_an_incomplete_dictionary_is_refused():
    with pytest.raises(FormatError, match="lacks <bow>, <eow>"):
        DictionaryCharacters(MARKS[:4])


def test_words_are_encoded_after_the_two_boundaries():
    vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "bank"])
    encoded = WordEncoder(ByteCharacters(8), vocabulary).encode(["bank", "shore"])
    assert encoded.ids.tolist() == [0, 1, 3, 2]
    assert encoded.lengths.tolist() == [3, 3, 6, 7]
    assert encoded.characters.shape == (4, 8)
    np.testing.assert_array_equal(encoded.characters[2, 6:], 260)


def test_dictionaries_look_cropped_words_up():
    vocabulary = Vocabulary(["<bos>", "<eos>", "<oov>", "aaa"], bos="<bos>", eos="<eos>", unk="<oov>")
    words = WordEncoder(DictionaryCharacters((*MARKS, "a"), max_characters=5), vocabulary, longest=3)
    assert words.encode(["aaaaaaaa"]).ids.tolist() == [0, 1, 3]
