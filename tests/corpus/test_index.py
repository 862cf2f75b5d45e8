"""An index on disk: what it holds is what was put in, and what is wrong with one is said."""

import json
import shutil

import numpy as np
import pytest
from sensible_embedder import SENTENCES
from tiny_models import make_encoder

from polyseme.corpus.index import Index
from polyseme.corpus.index_job import IndexJob
from polyseme.corpus.neighbours import nearest_uses
from polyseme.corpus.uses import Use, embed_uses, find_uses
from polyseme.errors import ConfigError, FormatError, InputError, OutputError


def make_index(encoder, folder, sentences=SENTENCES, **settings):
    job = IndexJob(encoder, folder, **settings)
    for _ in job.run(iter(sentences)):
        pass
    job.finish()
    return Index(folder)


@pytest.fixture
def index(encoder, tmp_path):
    return make_index(encoder, tmp_path / "index", model="path/of/it")


def test_what_is_found_is_what_embedding_gives(index, encoder):
    direct = embed_uses(encoder, find_uses(SENTENCES, "bank"))
    found = index.of("bank")
    assert list(found) == list(direct)
    for layer in (0, 1, 2, "top", "average"):
        np.testing.assert_allclose(found.vectors(layer), direct.vectors(layer), rtol=1e-3, atol=1e-3)


def test_case_is_matched_when_asked(index):
    assert len(index.of("BANK")) == 8
    assert [use.word for use in index.of("Bank", match_case=True)] == ["Bank"]
    with pytest.raises(InputError, match="no use of 'BANK'"):
        index.of("BANK", match_case=True)
    with pytest.raises(InputError, match="no use of 'zebra'"):
        index.of("zebra")


def test_a_limit_takes_some(index):
    assert len(index.of("the", limit=2)) == 2


def test_every_word_of_the_corpus_is_a_use(index):
    assert [use.words[use.place] for use in index.uses] == [word for words in SENTENCES for word in words]
    assert index.words == sorted(index.words, key=str.casefold)
    assert index.origin.path == "path/of/it"


def test_neighbours_are_the_same_from_disk_and_from_memory(index, encoder):
    use = Use(("A", "bank", "by", "the", "water"), 1)
    here = nearest_uses(encoder, use, embed_uses(encoder, find_uses(SENTENCES, "bank")), 1, top=4)
    there = nearest_uses(encoder, use, index.of("bank"), 1, top=4)
    assert [found.use for found in here.found] == [found.use for found in there.found]


def test_one_layer_alone_takes_a_third_of_the_room(encoder, tmp_path):
    index = make_index(encoder, tmp_path / "one", layer=1)
    assert index.origin.layers == (1,)
    assert not (tmp_path / "one" / "layer-0.f2").exists()
    np.testing.assert_allclose(
        index.of("bank").vectors(1), embed_uses(encoder, find_uses(SENTENCES, "bank")).vectors(1), rtol=1e-3, atol=1e-3
    )
    with pytest.raises(ConfigError, match="layer 2 is not stored here, only 1"):
        index.of("bank").vectors(2)
    with pytest.raises(ConfigError, match="all layers or one"):
        make_index(encoder, tmp_path / "average", layer="average")


def test_the_model_that_made_it_is_welcome(index, encoder):
    index.check(encoder)


def test_another_model_is_refused(index):
    with pytest.raises(ConfigError, match=r"was built with 'elmo' .* gives different vectors"):
        index.check(make_encoder(seed=1))
    with pytest.raises(
        ConfigError, match=r"was built with 'elmo' \(3 layers of 12\), not with 'elmo' \(2 layers of 12\)"
    ):
        index.check(make_encoder(num_layers=1))


def test_a_truncated_index_is_refused(index):
    path = index.folder / "layer-1.f2"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(FormatError, match=r"layer-1.f2 has [\d,]+ bytes instead of [\d,]+: the index is damaged"):
        Index(index.folder)


@pytest.mark.parametrize("name", ["sentences.txt", "uses.i8", "words.txt", "layer-0.f2"])
def test_a_missing_file_is_refused(index, name):
    (index.folder / name).unlink()
    with pytest.raises(FormatError, match=f"{name} has 0 bytes"):
        Index(index.folder)


def test_what_is_no_index_is_told(tmp_path, index):
    with pytest.raises(FormatError, match="is not an index"):
        Index(tmp_path)
    (index.folder / "index.json").write_text("{")
    with pytest.raises(FormatError, match="cannot be read"):
        Index(index.folder)
    (index.folder / "index.json").write_text(json.dumps({"polyseme index": 99, "model": {}, "files": {}}))
    with pytest.raises(FormatError, match="cannot be read"):
        Index(index.folder)


def test_an_empty_corpus_makes_no_index(encoder, tmp_path):
    with pytest.raises(InputError, match="no words to index"):
        make_index(encoder, tmp_path / "empty", sentences=[[], []])
    assert not (tmp_path / "empty").exists()


def test_an_index_is_not_overwritten_unasked_nor_anything_else(encoder, tmp_path, index):
    with pytest.raises(OutputError, match="exists already"):
        IndexJob(encoder, index.folder)
    make_index(encoder, index.folder, sentences=SENTENCES[:2], overwrite=True)
    assert len(Index(index.folder).uses.sentences) == 2
    (tmp_path / "precious").mkdir()
    with pytest.raises(OutputError, match="is not an index"):
        IndexJob(encoder, tmp_path / "precious", overwrite=True)


def test_an_interrupted_index_goes_on_where_it_was(encoder, tmp_path, index, monkeypatch):
    monkeypatch.setattr("polyseme.embedding.parts.PART_SENTENCES", 2)
    job = IndexJob(encoder, tmp_path / "second")
    for number, _ in enumerate(job.run(iter(SENTENCES))):
        if number == 4:
            break
    job.parts.keep()
    assert not (tmp_path / "second").exists()
    job = IndexJob(encoder, tmp_path / "second", resume=True)
    assert job.parts.done == 5
    assert len(list(job.run(iter(SENTENCES)))) == len(SENTENCES) - 5
    job.finish()
    for name in ("sentences.txt", "layer-2.f2", "uses.i8", "owners.u4"):
        assert (tmp_path / "second" / name).read_bytes() == (index.folder / name).read_bytes()
    assert not (tmp_path / "second.parts").exists()


def test_odd_words_come_back_as_they_were(encoder, tmp_path):
    sentences = [["na\u00efve", "\u4e2d\u6587", "\U0001f600", "Stra\u00dfe"], ["STRASSE", "x\u2028y"], ["a"]]
    index = make_index(encoder, tmp_path / "odd", sentences=sentences)
    assert [list(words) for words in index.uses.sentences] == sentences
    assert [use.word for use in index.of("strasse")] == ["Stra\u00dfe", "STRASSE"]
    shutil.move(tmp_path / "odd", tmp_path / "moved")
    assert len(Index(tmp_path / "moved").uses) == 7
