import math
import random

import numpy as np
import pytest
import torch
from language_models import WORDS, make_language_model

from polyseme.errors import InputError
from polyseme.lm import Document, perplexity, read_documents

DOCUMENTS = [
    [["He", "sat", "on", "the", "bank", "."], ["river"], ["the", "unheard-of", "of"]],
    [["bank"]],
    [["the", "river", "bank", "."] * 5, ["He"]],
]
SENTENCES = [words for document in DOCUMENTS for words in document]


def close(one, other):
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        assert value == pytest.approx(getattr(other, name), rel=1e-5), name


def test_fresh_perplexity_is_the_exponential_of_the_mean_score():
    model = make_language_model()
    found = perplexity(model, DOCUMENTS)
    scores = list(model.score_all(SENTENCES))
    forward, backward = (np.concatenate([getattr(score, way) for score in scores]) for way in ("forward", "backward"))
    assert found.forward == pytest.approx(np.exp(-forward.mean()), rel=1e-5)
    assert found.backward == pytest.approx(np.exp(-backward.mean()), rel=1e-5)
    assert found.both == pytest.approx(math.sqrt(found.forward * found.backward), rel=1e-5)
    assert (found.tokens, found.words, found.sentences, found.documents) == (len(forward), 32, 6, 3)
    assert found.unknown == 1 / 32
    assert not found.carried


def test_carried_over_documents_of_one_sentence_is_fresh():
    model = make_language_model()
    single = [[words] for words in SENTENCES]
    fresh, carried = (vars(perplexity(model, single, carried=carried)) for carried in (False, True))
    assert carried.pop("carried") is True
    assert fresh.pop("carried") is False
    assert carried == pytest.approx(fresh, rel=1e-5)


def test_carried_state_runs_through_a_document_both_ways():
    model = make_language_model()
    document = [["He", "sat"], ["the", "bank", "."]]
    ids = {word: number for number, word in enumerate(WORDS)}
    reader = model.scorer(list(WORDS[3:]))
    number = {"<S>": 0, "</S>": 1, **{word: place for place, word in enumerate(WORDS[3:], start=2)}}
    total = {}
    for way, read, wanted in (
        ("forward", "<S> He sat <S> the bank .", "He sat </S> the bank . </S>"),
        ("backward", "</S> . bank the </S> sat He", ". bank the <S> sat He <S>"),
    ):
        words = read.split()
        every = [reader.next_word(way, np.array([number[word] for word in words[: place + 1]])) for place in range(7)]
        total[way] = sum(float(one[ids[word]]) for one, word in zip(every, wanted.split(), strict=True))
    found = perplexity(model, [document], carried=True)
    assert found.forward == pytest.approx(math.exp(-total["forward"] / 7), rel=1e-5)
    assert found.backward == pytest.approx(math.exp(-total["backward"] / 7), rel=1e-5)
    assert found.forward != pytest.approx(perplexity(model, [document]).forward, rel=1e-4)


@pytest.mark.parametrize("carried", [False, True])
def test_order_and_batching_do_not_matter(carried, monkeypatch):
    model = make_language_model()
    documents = [list(document) for document in DOCUMENTS * 3]
    usual = perplexity(model, documents, carried=carried)
    random.Random(0).shuffle(documents)
    close(perplexity(model, documents, carried=carried), usual)
    monkeypatch.setattr("polyseme.lm.scorer.CPU", (2, 3, 30))
    monkeypatch.setattr("polyseme.lm.language_model.WINDOW", 10)
    close(perplexity(model, iter(documents), carried=carried), usual)


def test_bits_per_character_by_hand():
    model = make_language_model()
    document = [["He", "sat"], ["on", "."]]  # "He sat\non .\n"
    found = perplexity(model, [document])
    assert found.characters == 12
    scores = list(model.score_all(document))
    nats = -sum(score.forward_sum + score.backward_sum for score in scores) / 2
    assert found.bits_per_character == pytest.approx(nats / math.log(2) / 12, rel=1e-5)
    raw = perplexity(model, [Document(document, 24)])
    assert raw.characters == 24
    assert raw.bits_per_character == pytest.approx(found.bits_per_character / 2)


def test_a_stream_is_measured_as_it_comes(monkeypatch):
    monkeypatch.setattr("polyseme.lm.language_model.WINDOW", 50)
    model = make_language_model()
    stream = (([f"word{number}", "the"] for _ in range(2)) for number in range(200))
    scorer = model.scorer
    seen = []
    monkeypatch.setattr(model, "scorer", lambda words: seen.append(len(words)) or scorer(words))
    found = perplexity(model, stream, carried=True)
    assert (found.documents, found.sentences, found.unknown) == (200, 400, 0.5)
    assert max(seen) < 20


@pytest.mark.parametrize("way", ["forward", "backward"])
def test_one_direction_is_measured_by_itself(way):
    model = make_language_model(directions=(way,))
    found = perplexity(model, DOCUMENTS)
    assert found.both == getattr(found, way)
    assert getattr(found, "backward" if way == "forward" else "forward") is None


def test_a_model_in_training_is_left_as_it_was():
    model = make_language_model()
    model.bilm.train()
    model.bilm.inputs.eval()
    model.softmax.eval()
    modes = [part.training for part in (*model.bilm.modules(), *model.softmax.modules())]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = perplexity(model, DOCUMENTS)
    assert [part.training for part in (*model.bilm.modules(), *model.softmax.modules())] == modes
    assert all(weight.grad is None for weight in model.bilm.parameters())
    close(found, perplexity(model, DOCUMENTS))


def test_a_hopeless_model_has_an_infinite_perplexity():
    model = make_language_model()
    with torch.no_grad():
        model.softmax.bias[0] = 1e6
    found = perplexity(model, [[["the"]]])
    assert found.forward == math.inf


@pytest.mark.parametrize("documents", [[], [[]], iter([])])
def test_no_text_is_no_perplexity(documents):
    with pytest.raises(InputError, match="no text to measure"):
        perplexity(make_language_model(), documents)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (["the bank"], "a document is a list of sentences"),
        ([["the", "bank"]], "sentence 0 is a bare string"),
        ([[["the", None]]], "should be a string, not NoneType"),
        ([3], "sentences should be lists of words, not int"),
    ],
)
def test_what_is_no_text_is_refused(documents, message):
    with pytest.raises(InputError, match=message):
        perplexity(make_language_model(), documents)


def test_documents_are_parted_by_blank_lines_and_files(tmp_path):
    (tmp_path / "one.txt").write_text("He sat .\nOn it .\n\n \n\nThe bank .", encoding="utf-8")
    (tmp_path / "two.txt").write_text("\nthe river\n", encoding="utf-8")
    found = [list(document) for document in read_documents(tmp_path, raw=False)]
    assert found == [[["He", "sat", "."], ["On", "it", "."]], [["The", "bank", "."]], [["the", "river"]]]


def test_raw_documents_know_their_characters(tmp_path):
    (tmp_path / "raw.txt").write_text("He sat. It wasn't far.\nÜber\n\nThe end.\n", encoding="utf-8")
    found = [(list(document.sentences), document.characters) for document in read_documents(tmp_path, raw=True)]
    sentences = [["He", "sat", "."], ["It", "was", "n't", "far", "."], ["Über"]]
    assert found == [(sentences, 23 + 5), ([["The", "end", "."]], 9)]
