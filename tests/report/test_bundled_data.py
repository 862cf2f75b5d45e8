"""The labelled text that comes with the package, and what is measured on it."""

import importlib.util
from itertools import chain

import numpy as np
import pytest
import torch
from planted_senses import Planted, noise

from polyseme.errors import FormatError
from polyseme.report.measure.fits.window_tagger import WindowRows, fit_window_tagger
from polyseme.report.measure.fits.word_tasks import TASKS, count_correct, read_sample
from polyseme.report.measure.meanings import SENTENCES, measure_meanings, read_meanings
from polyseme.report.measure.measurement import SampleSizes
from polyseme.report.measure.model_under_test import BUNDLED, EvaluationData
from polyseme.report.measure.names import f1


@pytest.fixture(scope="module")
def words():
    return read_meanings(BUNDLED / SENTENCES)


def test_claim_1_has_words_and_sentences_enough(words):
    assert len(words) >= 40
    assert all(len(meanings) == 2 for meanings in words.values())
    assert all(len(uses) >= 6 for meanings in words.values() for uses in meanings.values())
    texts = [use.words for meanings in words.values() for uses in meanings.values() for use in uses]
    assert len(texts) == len(set(texts))
    assert list(words) == sorted(words)


def test_bundled_data_is_small_and_every_set_has_a_licence():
    files = [file for file in BUNDLED.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 3_000_000
    told = (BUNDLED / "README.md").read_text("utf-8")
    for folder in (path for path in BUNDLED.iterdir() if path.is_dir()):
        row = next(line for line in told.splitlines() if line.startswith(f"| `{folder.name}`"))
        assert any(licence in row for licence in ("CC BY-SA", "WordNet licence", "Apache-2.0"))


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_task_has_sentences_to_learn_from_and_others_to_be_tested_on(task):
    train, test = (read_sample(EvaluationData(None), task, part, 10_000) for part in (0, 1))
    assert min(len(train), len(test)) >= SampleSizes().fitted
    assert {tuple(each.words) for each in train if len(each.words) > 8}.isdisjoint(tuple(each.words) for each in test)
    assert len({*chain.from_iterable(each.labels for each in train)}) > 5


def test_bundled_data_gives_way_to_a_set_of_the_folder(tmp_path):
    (tmp_path / "pos-ud-ewt").mkdir()
    data = EvaluationData(tmp_path)
    assert "pos-ud-ewt/en_ewt-ud-train.conllu.xz" not in data
    assert "ner-uner/en_ewt-ud-dev.iob2" in data


def test_meanings_are_found_where_they_were_planted(words):
    meaning = {
        use.words: number for each in words.values() for number, uses in enumerate(each.values()) for use in uses
    }
    places = {use.words: use.place for each in words.values() for uses in each.values() for use in uses}

    def plant(sentence, place):
        known = tuple(sentence)
        mark = meaning[known] if places.get(known) == place else 0
        return np.concatenate([3 * np.eye(2)[mark], 0.3 * noise(*known, dim=6)])

    model = type("Model", (), {"encoder": Planted(plant)})()
    found = measure_meanings(model, EvaluationData(None), SampleSizes(homonyms=4))
    assert len(found["words"]) == 4
    assert found["mean"][1] > 0.9
    assert found["interval"][2][0] < 0.5 < found["interval"][2][1]
    assert found["accuracy"]["1"] > 0.9


def test_a_sentence_without_its_word_is_refused(tmp_path):
    path = tmp_path / "sentences.txt"
    path.write_text("# bank: of a river\nHe sat on the bench.\n")
    with pytest.raises(FormatError, match="expected a sentence with 'bank' once"):
        read_meanings(path)


def test_the_tagger_sees_neighbours_and_not_beyond_the_sentence():
    rng = np.random.default_rng(0)
    first = rng.integers(2, size=200)
    vectors = rng.normal(size=(2, 400, 4))
    vectors[1, ::2, 0] = 8.0 * first - 4  # sentences of two words; the label of the second is told by the first
    classes = np.stack([np.zeros(200, dtype=int), 1 + first], axis=1).ravel()
    vectors[1, ::2, 1] += 9
    rows = WindowRows.of(vectors.astype(np.float32), [2] * 200)
    tagger = fit_window_tagger(rows, torch.from_numpy(classes), 3, 30)
    assert (tagger(rows).argmax(dim=1).numpy() == classes).mean() > 0.98
    assert tagger.scores.softmax(0)[1] > 0.5
    assert rows.before[::2].tolist() == [-1] * 200
    assert rows.after[1::2].tolist() == [-1] * 200


def test_scores_count_what_they_say():
    gold = [["O", "noun.act"], ["noun.time", "O"]]
    said = ["O", "noun.act", "noun.act", "noun.act"]
    assert f1(count_correct(said, gold, "accuracy")) == 0.5
    assert f1(count_correct(said, gold, "labelled")) == 0.5
    names = [["B-PER", "I-PER", "O"]]
    assert f1(count_correct(["B-PER", "I-PER", "B-LOC"], names, "names")) == pytest.approx(2 / 3)


def test_the_script_of_the_bundle_reads_the_published_layouts(request, tmp_path):
    path = request.config.rootpath / "benchmarks/report_data.py"
    spec = importlib.util.spec_from_file_location("report_data_script", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    documents = [[f"{letter}{number}" for number in range(4)] for letter in "abcdefgh"]
    kept = script.evenly_spaced(documents, 12)
    assert [each[0] for each in kept] == ["a0", "c0", "f0"]
    tag = {"i": 1, "key": "sit%2:35:00::", "pos": "VB"}
    assert list(script.supersense_rows({"tokens": ["He", "sat", "down_there"], "senses": [tag]})) == [
        "He\tO",
        "sat\tverb.contact",
        "down\tO",
        "there\tO",
    ]
