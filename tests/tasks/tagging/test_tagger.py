"""The tagger: learns, never says what its scheme forbids, is saved and loaded, and speaks clearly of what is odd."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch
from labelled_data import people
from static_models import make_static
from tiny_models import make_encoder
from transformer_models import make_transformer, save_transformer

import polyseme
from polyseme.errors import ConfigError, FormatError, InputError, OutputError
from polyseme.formats import native, open_model
from polyseme.formats.native import write_manifest
from polyseme.tasks.features.bilstm import CharCnnSettings
from polyseme.tasks.features.feature_cache import FeatureCache
from polyseme.tasks.features.mixing import MixSettings
from polyseme.tasks.fitting.loop import FitSettings
from polyseme.tasks.tagging.labels import LabelSet
from polyseme.tasks.tagging.schemes import convert
from polyseme.tasks.tagging.tagger import TaggerSettings

SMALL = TaggerSettings(cells=12, layers=1, dropout=0.1, spelling=CharCnnSettings(dim=8, filters=12))
SMALL = dataclasses.replace(SMALL, mix=MixSettings(dropout=0.1))
QUICK = FitSettings(epochs=8, epoch_steps=1, rate=0.03, batch_size=16, patience=8, average=0)
BRIEF = dataclasses.replace(QUICK, epochs=1)
TRAIN, DEV, TEST = people(60, 0), people(20, 1), people(30, 2)


def make(encoder=None, fit=QUICK, **settings):
    return polyseme.Tagger(encoder, settings=dataclasses.replace(SMALL, **settings), fit_settings=fit)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYSEME_CACHE", str(tmp_path_factory.mktemp("cache")))
        return make(make_encoder()).fit(*TRAIN, dev=DEV)


def weights(tagger):
    return {name: weight.tolist() for name, weight in tagger.network_.state_dict().items()}


@pytest.mark.parametrize(("where", "layers"), [("input", 2), ("output", 1), ("both", 1), ("taglm", 1), ("taglm", 2)])
def test_it_learns_wherever_the_vectors_enter(where, layers):
    tagger = make(make_encoder(), where=where, layers=layers)
    assert tagger.fit(*TRAIN, dev=DEV) is tagger
    assert tagger.score(*TEST) > 0.95
    places = {"input": ["input"], "output": ["output"], "both": ["input", "output"], "taglm": ["middle"]}[where]
    assert list(tagger.mixes()) == places
    for mixes in tagger.mixes().values():
        assert sum(mixes[0].weights) == pytest.approx(1)
    if where == "taglm":
        assert (mixes[0].weights, mixes[0].gamma) == ((0, 0, 1), 1)
    else:
        assert mixes[0].weights != (1 / 3, 1 / 3, 1 / 3)


def test_it_learns_without_contextual_vectors_and_with_several():
    assert make().fit(*TRAIN, dev=DEV).score(*TEST) > 0.95
    several = make([make_encoder(), make_static(), make_transformer()]).fit(*TRAIN, dev=DEV)
    assert several.score(*TEST) > 0.95
    assert [len(mix.weights) for mix in several.mixes()["input"]] == [3, 1, 5]


def test_word_vectors_stand_beside():
    tagger = polyseme.Tagger(None, words=make_static(), settings=SMALL, fit_settings=BRIEF).fit(*TRAIN, dev=DEV)
    assert tagger.network_.lstms[0].input_size == 5 + 12
    with pytest.raises(ConfigError, match="word vectors have one layer; elmo has 3: give it as encoder"):
        polyseme.Tagger(None, words=make_encoder(), settings=SMALL).fit(*TRAIN)


def test_no_sequence_is_predicted_that_the_scheme_forbids():
    tagger = make(fit=FitSettings(epochs=1, epoch_steps=1, rate=0.0)).fit(*TRAIN)
    with torch.no_grad():
        for weight in tagger.network_.parameters():
            weight.normal_(std=2.0)
    for labels in tagger.predict([list("abcdefgh") * 3] * 20):
        assert convert(labels, "IOB2") == labels


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "BIOES"])
def test_labels_come_out_in_the_scheme_they_went_in(scheme):
    sentences, labels = [["Ada", "Bob", "waits"], ["Rome", "Rome"]] * 10, [["B-P", "B-P", "O"], ["B-L", "I-L"]] * 10
    tagger = make().fit(sentences, [convert(row, scheme) for row in labels])
    assert tagger.labels_.scheme == scheme
    assert tagger.predict(sentences[:2]) == [convert(row, scheme) for row in labels[:2]]
    assert tagger.score(sentences, labels) == 1
    assert {"B-P", "I-P", "E-P", "S-P"} < set(tagger.classes_)


def test_plain_labels_are_scored_by_accuracy():
    labels = [["NOUN" if word[0].isupper() else "X" for word in words] for words in TRAIN[0]]
    tagger = make().fit(TRAIN[0], labels)
    assert tagger.labels_ == LabelSet("plain", ("NOUN", "X"))
    scores = tagger.evaluate(TRAIN[0], labels)
    assert scores.entities is None
    assert tagger.score(TRAIN[0], labels) == scores.accuracy > 0.95


def test_probabilities_sum_to_one_and_agree_with_the_labels(fitted):
    sentences = [*TEST[0][:5], [], ["Ada"]]
    shares = fitted.predict_proba(sentences)
    assert [array.shape for array in shares] == [(len(words), len(fitted.classes_)) for words in sentences]
    for array, labels in zip(shares, fitted.predict(sentences), strict=True):
        np.testing.assert_allclose(array.sum(axis=1), 1, rtol=1e-4)
        best = [fitted.classes_[number] for number in array.argmax(axis=1)]
        assert best == convert(labels, "BIOES")


def test_a_sentence_does_not_depend_on_its_company(fitted):
    sentences = [*TEST[0], [], ["Ada"] * 40, []]
    together = fitted.predict_proba(sentences)
    for words, array in zip(sentences, together, strict=True):
        np.testing.assert_allclose(fitted.predict_proba([words])[0], array, atol=1e-5)


def test_a_stream_is_tagged_while_it_comes(fitted):
    taken = []

    def stream():
        for number in range(10**9):
            taken.append(number)
            yield ["Ada", "Smith"] if number % 2 else []

    found = fitted.tag(stream())
    assert [len(next(found)) for _ in range(6)] == [0, 2, 0, 2, 0, 2]
    assert len(taken) < 10**5
    assert fitted.predict([]) == []


def test_the_same_seed_gives_the_same_model_to_the_last_bit():
    short = dataclasses.replace(QUICK, epochs=2)
    one, other = (make(make_encoder(), fit=short).fit(*TRAIN, dev=DEV) for _ in range(2))
    assert weights(one) == weights(other)
    assert weights(one.fit(*TRAIN, dev=DEV)) == weights(other)
    assert weights(make(make_encoder(), fit=dataclasses.replace(short, seed=1)).fit(*TRAIN, dev=DEV)) != weights(one)


def test_a_killed_fit_goes_on_to_the_same_model(tmp_path):
    short = dataclasses.replace(QUICK, epochs=3)
    whole = make(make_encoder(), fit=short).fit(*TRAIN, dev=DEV)
    for report in make(make_encoder(), fit=short).fitting(*TRAIN, dev=DEV, checkpoint=tmp_path / "c"):
        if report.epoch == 2:
            break
    again = make(make_encoder(), fit=short)
    reports = list(again.fitting(*TRAIN, dev=DEV, checkpoint=tmp_path / "c"))
    assert reports[0].epoch == 2
    assert weights(again) == weights(whole)
    with pytest.raises(OutputError, match="started with other data"):
        make(make_encoder(), fit=short).fit(*TEST, dev=DEV, checkpoint=tmp_path / "c")
    with pytest.raises(OutputError, match="started with other encoders"):
        make(make_encoder(seed=5), fit=short).fit(*TRAIN, dev=DEV, checkpoint=tmp_path / "c")


def test_what_is_saved_is_loaded_and_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "ner")
    names = sorted(file.name for file in (tmp_path / "ner").iterdir())
    assert names == ["config.json", "manifest.json", "model.safetensors"]
    loaded = polyseme.Tagger.load(tmp_path / "ner", make_encoder())
    assert weights(loaded) == weights(fitted)
    assert loaded.predict(TEST[0]) == fitted.predict(TEST[0])
    assert (loaded.settings, loaded.fit_settings) == (fitted.settings, fitted.fit_settings)
    assert (loaded.best_score_, loaded.best_epoch_) == (fitted.best_score_, fitted.best_epoch_)


def test_an_encoder_is_found_again_by_its_path_and_another_is_refused(fixtures, tmp_path):
    shutil.copytree(fixtures / "tiny", tmp_path / "elmo")
    tagger = make(tmp_path / "elmo", fit=BRIEF).fit(*TRAIN)
    tagger.save(tmp_path / "ner")
    assert polyseme.Tagger.load(tmp_path / "ner").predict(TEST[0]) == tagger.predict(TEST[0])
    (tmp_path / "elmo").rename(tmp_path / "moved")
    with pytest.raises(
        FormatError, match=r"needs its encoder elmo, but .* does not exist.* if it has moved, give its new path"
    ):
        polyseme.Tagger.load(tmp_path / "ner")
    assert polyseme.Tagger.load(tmp_path / "ner", tmp_path / "moved").predict(TEST[0]) == tagger.predict(TEST[0])
    with pytest.raises(
        ConfigError, match=r"was fitted with the encoder elmo of fingerprint .* would mean nothing here"
    ):
        polyseme.Tagger.load(tmp_path / "ner", make_encoder())
    with pytest.raises(ConfigError, match="was fitted with 1 of these encoders; 2 were given"):
        polyseme.Tagger.load(tmp_path / "ner", [make_encoder(), make_encoder()])


def test_a_bundle_needs_nothing_but_itself(fixtures, tmp_path):
    native.save(open_model(fixtures / "tiny"), tmp_path / "elmo", "int8")
    save_transformer(tmp_path / "bert")
    (tmp_path / "words.txt").write_text("Ada 1 0 0\nlives 0 1 0\nin 0 0 1\n")
    tagger = polyseme.Tagger(
        [tmp_path / "elmo", tmp_path / "bert"],
        words=tmp_path / "words.txt",
        settings=SMALL,
        fit_settings=BRIEF,
    ).fit(*TRAIN)
    tagger.save(tmp_path / "ner", bundle=True)
    for name in ("elmo", "bert"):
        shutil.rmtree(tmp_path / name)
    (tmp_path / "words.txt").unlink()
    (tmp_path / "ner").rename(tmp_path / "elsewhere")
    assert polyseme.Tagger.load(tmp_path / "elsewhere").predict(TEST[0]) == tagger.predict(TEST[0])
    assert open_model(tmp_path / "elsewhere" / "encoder-0").precision == "int8"
    with pytest.raises(ConfigError, match="was passed as an object, so its files are not known"):
        make(make_encoder(), fit=BRIEF).fit(TRAIN[0][:2], TRAIN[1][:2]).save(tmp_path / "other", bundle=True)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("make_one", [make_encoder, make_transformer])
def test_encoders_learn_when_they_are_told_and_the_ones_given_stay_what_they_were(make_one, tmp_path):
    encoder = make_one()
    before = encoder.fingerprint()
    settings = dataclasses.replace(QUICK, epochs=3, gradual=True, encoder_rate=0.01)
    tagger = make(encoder, fit=settings, fine_tune=True).fit(*TRAIN, dev=DEV)
    learned = tagger.reader_.encoders[0]
    assert encoder.fingerprint() == before != learned.fingerprint()
    tagger.save(tmp_path / "ner")
    loaded = polyseme.Tagger.load(tmp_path / "ner", make_one())
    assert loaded.predict(TEST[0]) == tagger.predict(TEST[0])
    assert loaded.reader_.encoders[0].fingerprint() == learned.fingerprint()


def test_a_folder_that_is_damaged_or_something_else_is_said(fitted, tmp_path, fixtures):
    fitted.save(tmp_path / "ner")
    with pytest.raises(OutputError, match="exists already"):
        fitted.save(tmp_path / "ner")
    fitted.save(tmp_path / "ner", overwrite=True)
    with pytest.raises(OutputError, match="is not a fitted model, so it is not overwritten"):
        fitted.save(shutil.copytree(fixtures / "tiny", tmp_path / "elmo"), overwrite=True)
    with pytest.raises(FormatError, match="should be a 'polyseme tagger' of version 1, but it is 'polyseme'"):
        polyseme.Tagger.load(fixtures / "tiny")
    with pytest.raises(FormatError, match="is not a fitted tagger"):
        polyseme.Tagger.load(tmp_path)
    with pytest.raises(ConfigError, match="which was passed as an object; pass it, or its path, to load"):
        polyseme.Tagger.load(tmp_path / "ner")
    file = tmp_path / "ner" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    with pytest.raises(FormatError, match="is damaged"):
        polyseme.Tagger.load(tmp_path / "ner", make_encoder())
    file.write_bytes(content[:-9])
    with pytest.raises(FormatError, match="bytes, not"):
        polyseme.Tagger.load(tmp_path / "ner", make_encoder())


def test_a_config_that_points_outside_its_folder_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "ner")
    config = json.loads((tmp_path / "ner" / "config.json").read_text())
    config["sources"]["encoder"][0]["bundled"] = "../../etc"
    (tmp_path / "ner" / "config.json").write_text(json.dumps(config))
    write_manifest(tmp_path / "ner")
    with pytest.raises(FormatError, match="should be inside the folder"):
        polyseme.Tagger.load(tmp_path / "ner")


def test_a_disk_that_is_full_leaves_the_old_model_whole(fitted, tmp_path, monkeypatch):
    fitted.save(tmp_path / "ner")
    before = (tmp_path / "ner" / "model.safetensors").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("polyseme.tasks.folder.save_file", full)
    with pytest.raises(OutputError, match="No space left on device"):
        fitted.save(tmp_path / "ner", overwrite=True)
    assert (tmp_path / "ner" / "model.safetensors").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if "ner" in path.name] == ["ner"]


def test_one_training_sentence_is_enough_and_empty_ones_are_passed_over():
    tagger = make(make_encoder()).fit([[], ["Ada", "waits"], []], [[], ["B-PER", "O"], []])
    assert tagger.predict([["Ada", "waits"], []]) == [["B-PER", "O"], []]
    assert tagger.best_score_ is None


def test_a_dev_set_without_entities_is_judged_by_accuracy():
    reports = list(make(fit=BRIEF).fitting(*TRAIN, dev=([["in", "Rome"]], [["O", "O"]])))
    assert {report.score.name for report in reports if report.score} == {"accuracy"}
    assert {report.score.name for report in make(fit=BRIEF).fitting(*TRAIN, dev=DEV) if report.score} == {"F1"}


def test_entities_that_training_never_showed_count_as_missed(fitted):
    sentences, labels = (
        [["Ada", "Smith", "lives", "in", "Oslo", "."]] * 2,
        [["B-PER", "I-PER", "O", "O", "B-XYZ", "O"]] * 2,
    )
    scores = fitted.evaluate(sentences, labels)
    assert scores.unseen == {"XYZ": 2}
    assert scores.entities.types["XYZ"].recall == 0
    make(fit=BRIEF).fit(*TRAIN, dev=(sentences, labels))


def test_labels_that_training_never_showed_count_as_wrong():
    tagger = make(fit=BRIEF).fit([["a", "b"]] * 9, [["X", "Y"]] * 9)
    scores = tagger.evaluate([["a", "b", "b"]], [["X", "Z", "Y"]])
    assert scores.unseen == {"Z": 1}
    assert scores.accuracy <= 2 / 3


def test_words_without_a_label_have_the_label_of_none():
    tagger = make().fit([["a", "b"]] * 9, [["X", None]] * 9)
    assert tagger.predict([["a", "b"]]) == [["X", "_"]]
    assert tagger.score([["a", "b"]], [["X", None]]) == 1


@pytest.mark.parametrize(
    ("sentences", "labels", "message"),
    [
        ([["a", "b"]], [["X"]], "sentence 0 has 2 words, but 1 labels"),
        ([["a"]], [["X"], ["Y"]], "1 sentences, but labels for 2"),
        ([["a"], ["b"]], [["O"], ["O"]], "all labels in training are 'O'; give at least two different labels"),
        ([[], []], [[], []], "the training set is empty"),
        ([], [], "the training set is empty"),
        (["Ada waits."], [["B-PER", "O"]], "has 3 words, but 2 labels: .* the text was split into these words"),
        ("a bare string", [["X"]], "expected a list of texts or of word lists, not 'a bare string'"),
        ([[str(n) for n in range(1500)]], [[f"x{n}" for n in range(1500)]], "training has 1,500 different labels"),
        ([["a", "b"]], [["a", "b"]], "the labels of the training set are its words"),
    ],
)
def test_training_sets_that_make_no_sense_are_refused(sentences, labels, message):
    with pytest.raises(InputError, match=message):
        make().fit(sentences, labels)


def test_labels_of_another_column_are_noticed(fitted):
    with pytest.raises(InputError, match="the test set has a label 'NNP', but the tagger learned entities, like B-LOC"):
        fitted.score([["Ada"]], [["NNP"]])
    with pytest.raises(InputError, match="the dev set has a label 'NNP'"):
        make().fit(*TRAIN, dev=([["Ada"]], [["NNP"]]))
    plain = make(fit=BRIEF).fit([["a", "b"]] * 4, [["X", "Y"]] * 4)
    with pytest.raises(InputError, match=r"none of the labels that the tagger learned \(X, Y, ...\), but 'B-PER'"):
        plain.score([["Ada"]], [["B-PER"]])


def test_what_cannot_be_is_refused_in_a_sentence():
    with pytest.raises(ConfigError, match="is not fitted yet"):
        make().predict([["a"]])
    with pytest.raises(InputError, match="the dev set is empty"):
        make().fit(*TRAIN, dev=([[]], [[]]))
    with pytest.raises(ConfigError, match="there are none; give an encoder, or leave it out"):
        make(fine_tune=True).fit(*TRAIN)
    with pytest.raises(ConfigError, match="nothing to read at the input"):
        make(make_encoder(), where="output", spelling=None).fit(*TRAIN)
    with pytest.raises(ConfigError, match="mapped from a file; to train them, load trainable=True"):
        make(make_static(), fine_tune=True).fit(*TRAIN)
    with pytest.raises(ConfigError, match="where must be one of input, output, both, taglm"):
        TaggerSettings(where="top")
    with pytest.raises(ConfigError, match=r"an encoder is a path or what polyseme\.load gave"):
        make(3.5).fit(*TRAIN)


def test_vectors_are_computed_once_for_all_seeds(tmp_path):
    encoder, cache = make_encoder(), FeatureCache(tmp_path)
    for seed in range(2):
        settings = dataclasses.replace(QUICK, epochs=1, seed=seed)
        polyseme.Tagger(encoder, settings=SMALL, fit_settings=settings, cache=cache).fit(*TRAIN, dev=DEV)
    assert encoder.cache_report.words == sum(map(len, (*TRAIN[0], *DEV[0])))
