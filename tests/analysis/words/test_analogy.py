"""Word analogies by vector arithmetic, against gensim."""

import numpy as np
import pytest
from planted_senses import Planted
from tiny_models import make_encoder

import polyseme
from polyseme.analysis.words import analogy as module
from polyseme.analysis.words.analogy import TOTAL, Question, analogy, read_candidates, read_relations
from polyseme.errors import FormatError, InputError

ROYAL = {"man": (1, 0, 0), "woman": (1, 1, 0), "king": (1, 0, 1), "queen": (1, 1, 1), "apple": (-1, 0, 0.1)}
SECTIONS = {
    "family": [Question("man", "king", "woman", "queen"), Question("Woman", "Queen", "Man", "King")],
    "strange": [Question("man", "king", "woman", "apple"), Question("man", "king", "unheard-of", "queen")],
}


@pytest.fixture
def static(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in ROYAL.items()))
    return polyseme.load(path, cache=False)


def write(folder, text):
    (folder / "relations.txt").write_text(text)
    return folder / "relations.txt"


def test_sections_are_read(tmp_path):
    text = "a b c d\n: capital common\nParis France Rome Italy\n\n:gram1\na b c d\ne f g h\n"
    sections = read_relations(write(tmp_path, text))
    assert {name: len(questions) for name, questions in sections.items()} == {
        "questions": 1,
        "capital common": 1,
        "gram1": 2,
    }
    assert sections["capital common"] == [("Paris", "France", "Rome", "Italy")]


def test_the_king_and_the_queen(static):
    family, strange, total = analogy(static, SECTIONS).rows
    assert (family.questions, family.known, family.correct, family.accuracy) == (2, 2, 2, 1)
    assert (strange.questions, strange.known, strange.correct) == (2, 1, 0)
    assert (total.section, total.questions, total.known, total.correct) == (TOTAL, 4, 3, 2)
    assert (total.accuracy, total.accuracy_all) == (pytest.approx(2 / 3), 0.5)


def test_the_words_of_a_question_are_no_answers(static):
    (row, _) = analogy(static, {"same": [Question("man", "man", "king", "king")]}).rows
    assert row.correct == 0


def test_only_candidates_are_answers(static):
    result = analogy(static, SECTIONS, ["apple", "QUEEN", "unheard-of"])
    assert result.candidates == 2
    assert [(row.known, row.correct) for row in result.rows] == [(1, 1), (1, 0), (2, 1)]


def test_a_model_without_a_list_of_words_answers_with_those_of_the_questions():
    result = analogy(make_encoder(), SECTIONS)
    assert result.candidates == 10  # Woman, Queen, Man and King are spelt in their own way
    assert [row.layer for row in result.rows] == [layer for layer in range(3) for _ in range(3)]
    assert result.rows[-1].known == 4


def test_equals_gensim(tmp_path, fixtures, monkeypatch):
    """On random vectors with relations in them, so that about half the answers are right."""
    gensim = pytest.importorskip("gensim.models")
    sections = read_relations(fixtures / "relations.txt")
    words = sorted({word for questions in sections.values() for each in questions for word in each} - {"Oslo"})
    random = np.random.default_rng(0)
    vectors = {word: random.normal(size=12) for word in words}
    for name, questions in sections.items():
        offset = np.random.default_rng(len(name)).normal(size=12)
        for each in questions:
            if each.a in vectors and each.b in vectors:
                vectors[each.b] = vectors[each.a] + offset + 0.4 * np.random.default_rng(len(each.b)).normal(size=12)
    path = tmp_path / "vectors.txt"
    lines = [f"{word} {' '.join(f'{x:.6f}' for x in vector)}\n" for word, vector in vectors.items()]
    path.write_text(f"{len(lines)} 12\n{''.join(lines)}")
    theirs = gensim.KeyedVectors.load_word2vec_format(path)
    score, parts = theirs.evaluate_word_analogies(str(fixtures / "relations.txt"))
    monkeypatch.setattr(module, "_BLOCK", 1000)  # several batches
    *rows, total = analogy(polyseme.load(path, cache=False), sections).rows
    assert total.accuracy == pytest.approx(score)
    assert 0.2 < total.accuracy < 0.98
    assert [row.correct for row in rows] == [len(part["correct"]) for part in parts[:-1]]
    assert total.known == total.questions - 14


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", InputError, "has no questions"),
        (": nothing\n", InputError, "has no questions"),
        (": part\na b c\n", FormatError, "line 2: expected four words, or a : and a name; got 3"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(tmp_path, text, error, message):
    with pytest.raises(error, match=message):
        read_relations(write(tmp_path, text))


def test_candidates_are_the_first_word_of_each_line(tmp_path):
    assert read_candidates(write(tmp_path, "the 0.1 0.2\n\nof 0.3\n")) == ["the", "of"]
    with pytest.raises(InputError, match="has no words"):
        read_candidates(write(tmp_path, "\n"))


def test_an_empty_set_is_refused():
    with pytest.raises(InputError, match="no analogy questions"):
        analogy(Planted(), {"nothing": []})
