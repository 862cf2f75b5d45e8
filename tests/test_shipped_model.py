"""The model that ships: how it is found, with a stand-in; and what the real one knows, where it is."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from language_models import make_language_model, save_language_model

import polyseme
from polyseme.analysis.words.spelling import SpellingSettings, known_words, spelling
from polyseme.corpus.uses import bundled_sentences, embed_uses
from polyseme.embedding.similarity import unit
from polyseme.errors import ConfigError
from polyseme.formats import SHIPPED_FOLDER, SHIPPED_MODEL, open_model
from polyseme.lm import perplexity
from polyseme.loading import ELMO, backend_of
from polyseme.report.demo import labelled_uses
from polyseme.tasks.folder import EncoderSource

PLACE = SHIPPED_FOLDER / SHIPPED_MODEL
LARGEST = 45_000_000
ships = pytest.mark.skipif(not PLACE.is_dir(), reason="no English model in polyseme/models yet")


@pytest.fixture
def stand_in(tmp_path, monkeypatch) -> Path:
    """A random model in the place of the one that ships, and an empty folder to work in."""
    monkeypatch.setattr("polyseme.formats.SHIPPED_FOLDER", tmp_path / "models")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return save_language_model(make_language_model(), tmp_path / "models" / "english")


@pytest.fixture(scope="module")
def english():
    return polyseme.load()


def test_without_a_path_and_by_its_name_the_model_that_ships_is_opened(stand_in):
    sentence = [["He", "sat", "on", "the", "bank"]]
    expected = next(polyseme.load(stand_in).embed(sentence))
    for opened in (polyseme.load(), polyseme.load("english"), polyseme.ElmoLayer.from_pretrained().encoder):
        assert opened.name == "english"
        assert np.array_equal(next(opened.embed(sentence)), expected)
    assert backend_of("english") is ELMO
    assert open_model("english").softmax is not None
    assert polyseme.LanguageModel.load().name == polyseme.LanguageModel.load("english").name == "english"


def test_a_folder_of_that_name_comes_first(stand_in):
    mine = save_language_model(make_language_model(seed=1), Path("english"))
    with pytest.warns(UserWarning, match="means the file or folder ./english here"):
        opened = polyseme.load("english")
    assert opened.fingerprint() == polyseme.load(mine.resolve()).fingerprint()
    assert polyseme.load().fingerprint() == polyseme.load(stand_in).fingerprint()


@pytest.mark.parametrize(
    "arguments",
    [
        ("info",),
        ("predict", "He sat on"),
        ("embed", "text.txt", "-o", "vectors.npz"),
        ("index", "text.txt", "-o", "indexed"),
        ("neighbours", "A bank .", "--word", "bank"),
        ("perplexity", "english", "text.txt"),
        ("convert", "english", "copy"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_use_the_model_that_ships(call, stand_in, arguments):
    Path("text.txt").write_text("He sat on the bank .\n")
    outcome = call(*arguments)
    assert outcome.status == 0, outcome.err


def test_an_index_finds_the_model_that_ships_again_wherever_it_is(call, stand_in, tmp_path, monkeypatch):
    Path("text.txt").write_text("He sat on the bank .\nThe bank of the river .\n")
    assert call("index", "text.txt", "-o", "indexed").status == 0
    stand_in.parent.rename(tmp_path / "elsewhere")
    monkeypatch.setattr("polyseme.formats.SHIPPED_FOLDER", tmp_path / "elsewhere")
    outcome = call("neighbours", "A bank .", "--word", "bank", "--index", "indexed")
    assert outcome.status == 0, outcome.err
    assert "of the river" in outcome.out


def test_a_task_remembers_it_by_name_and_can_take_it_along(stand_in, tmp_path):
    source = EncoderSource.open("english")
    assert source.describe()["path"] == "english"
    bundled = source.bundle(tmp_path / "bundled")
    assert polyseme.load(tmp_path / bundled).fingerprint() == source.fingerprint


def test_an_install_without_a_model_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("polyseme.formats.SHIPPED_FOLDER", tmp_path)
    for opening in (polyseme.load, polyseme.LanguageModel.load, lambda: polyseme.load("english")):
        with pytest.raises(ConfigError, match="no model ships with this install"):
            opening()


@ships
def test_the_folder_is_small_whole_and_as_its_manifest_says():
    files = sorted(PLACE.iterdir())
    assert sum(file.stat().st_size for file in files) <= LARGEST
    manifest = json.loads((PLACE / "manifest.json").read_text())["files"]
    assert {file.name for file in files} == {*manifest, "manifest.json"}
    for name, about in manifest.items():
        assert hashlib.sha256((PLACE / name).read_bytes()).hexdigest() == about["sha256"], name


@ships
def test_the_first_line_of_python_gives_vectors_that_depend_on_the_sentence(english):
    first, second = english.embed([["I", "put", "my", "books", "in", "the", "bag", "."], ["She", "put", "it", "there"]])
    assert first.shape == (english.num_layers, 8, english.dim)
    assert np.array_equal(first[0, 1], second[0, 1])
    assert not np.allclose(first[-1, 1], second[-1, 1], atol=0.1)


@ships
def test_the_nearest_use_of_a_word_has_mostly_the_same_sense(english):
    right = []
    for senses in labelled_uses().values():
        names = np.repeat(list(senses), [len(group) for group in senses.values()])
        vectors = unit(embed_uses(english, [use for group in senses.values() for use in group], "top").vectors("top"))
        cosines = vectors @ vectors.T
        np.fill_diagonal(cosines, -1)
        right += (names[cosines.argmax(axis=1)] == names).tolist()
    assert np.mean(right) > 0.8


@ships
def test_it_expects_english():
    language = polyseme.LanguageModel.load()
    found = perplexity(language, [bundled_sentences()[:40]])
    assert found.unknown < 0.02
    assert found.both < 200, "of some 100,000 words"
    assert "bank" in [
        word for word, _ in language.substitutes(["He", "sat", "on", "the", "___", "of", "the", "river", "."], 4, 20)
    ]


@ships
def test_spelling_leads_from_words_never_seen_to_those_that_they_come_from(english):
    settings = SpellingSettings(count=60, commonest=3000)
    shares = {score.kind: score.share for score in spelling(english, known_words(PLACE, english), (), settings).scores}
    assert shares["forms"] > 0.5
    assert shares["misspellings"] > 0.5


@ships
def test_the_demo_shows_it(call, tmp_path):
    outcome = call("demo", "--plot", tmp_path / "senses.png")
    assert outcome.status == 0, outcome.err
    assert outcome.out.startswith("english")
    assert (tmp_path / "senses.png").stat().st_size > 10_000
