"""A linear probe finds what a layer knows, and no more."""

import dataclasses
import json

import numpy as np
import pytest
from planted_senses import OneLayer, Planted, noise

from polyseme.analysis import layer_vectors
from polyseme.analysis.layers.probe import JOINED, ProbeSettings, draw_probe, probe
from polyseme.errors import ConfigError, InputError, OutputError
from polyseme.text.conll import LabelledSentence

LABELS = ("A", "B", "C")
WORDS = [f"w{number}" for number in range(30)]


def sentences(count, seed):
    """Random words; a word's label is said by the word before it, so by context alone."""
    random = np.random.default_rng(seed)
    made = [[WORDS[number] for number in random.integers(len(WORDS), size=6)] for _ in range(count)]
    return [LabelledSentence(words, [label_of(words, place) for place in range(6)]) for words in made]


def label_of(words, place):
    return LABELS[int(words[place - 1][1:]) % 3] if place else None


def plant(words, place):
    vector = np.zeros(8, dtype=np.float32)
    if place:
        vector[LABELS.index(label_of(words, place))] = 1
    return vector


TRAIN, TEST = sentences(300, 1), sentences(100, 2)


@pytest.fixture(scope="module")
def result():
    return probe(Planted(plant), TRAIN, TEST)


def test_the_layer_that_knows_is_found(result):
    by_layer = {row.layer: row for row in result.layers}
    assert list(by_layer) == [0, 1, 2, JOINED]
    assert by_layer[1].accuracy == 1
    assert by_layer[JOINED].accuracy > 0.97
    assert by_layer[0].accuracy < 0.5
    assert by_layer[2].accuracy < 0.5


def noisy(words, place):
    """The truth among much that happens to be so here and is nowhere else."""
    return np.concatenate([2 * plant(words, place), np.zeros(200)]) + noise(*words, place, dim=208)


def test_a_dev_set_chooses_a_penalty_for_each_layer():
    settings = ProbeSettings(layers=1, control=False)
    few, dev = TRAIN[:60], sentences(150, 3)
    (free,) = probe(Planted(noisy, dim=208), few, TEST, settings).layers
    (chosen,) = probe(Planted(noisy, dim=208), few, TEST, settings, dev).layers
    assert free.inverse_penalty == 1.0
    assert chosen.inverse_penalty < 1.0
    assert chosen.accuracy > free.accuracy


def test_the_control_task_is_learned_from_words_and_not_from_context(result):
    by_layer = {row.layer: row for row in result.layers}
    assert by_layer[0].control > by_layer[2].control + 0.1
    assert by_layer[1].control < 0.6
    assert by_layer[1].selectivity == by_layer[1].accuracy - by_layer[1].control > 0.4
    assert by_layer[0].selectivity < 0


def test_words_without_a_label_are_context_only(result):
    assert (result.train_words, result.test_words, result.labels) == (1500, 500, 3)


def test_figures_to_judge_by_are_given(result):
    assert 0.2 < result.commonest < 0.5
    assert 0.2 < result.by_word < 0.5


def test_the_same_seed_gives_the_same_result(result):
    assert probe(Planted(plant), TRAIN, TEST) == result
    other = probe(Planted(plant), TRAIN, TEST, ProbeSettings(seed=1))
    assert [row.accuracy for row in other.layers] == [row.accuracy for row in result.layers]
    assert [row.control for row in other.layers] != [row.control for row in result.layers]


def test_it_becomes_json(result):
    assert json.loads(json.dumps(dataclasses.asdict(result)))["layers"][1]["accuracy"] == 1


def test_one_layer_is_one_row_and_one_choice_too():
    assert [row.layer for row in probe(OneLayer(), TRAIN, TEST).layers] == [0]
    chosen = probe(Planted(plant), TRAIN, TEST, ProbeSettings(layers="top", control=False))
    assert [(row.layer, row.control, row.selectivity) for row in chosen.layers] == [("top", None, None)]


def test_features_too_large_for_memory_go_to_a_file(monkeypatch, result):
    monkeypatch.setattr(layer_vectors, "SMALL", 0)
    assert probe(Planted(plant), TRAIN, TEST) == result


def test_a_full_disk_is_said_and_does_not_crash(monkeypatch):
    monkeypatch.setattr(layer_vectors, "SMALL", 0)
    with pytest.raises(OutputError, match="set TMPDIR to a folder on another disk"):
        layer_vectors.temporary_array(1 << 40, 1 << 10)


def test_labels_that_training_does_not_have_count_as_wrong():
    strange = [*TEST, LabelledSentence(["w1", "w2"], [None, "Z"])]
    result = probe(Planted(plant), TRAIN, strange, ProbeSettings(layers=1, control=False))
    assert result.unseen == {"Z": 1}
    assert result.layers[0].accuracy == pytest.approx(500 / 501)


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ([], TEST, "the training set is empty"),
        (TRAIN, [], "the test set is empty"),
        (TRAIN, [LabelledSentence(["a"], [None])], "the test set is empty: no word in it has a label"),
        ([LabelledSentence(["a", "b"], ["X", "X"])], TEST, "all labels in training are 'X'"),
    ],
)
def test_sets_that_say_nothing_are_refused(train, test, message):
    with pytest.raises(InputError, match=message):
        probe(Planted(plant), train, test)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="above 0"):
        ProbeSettings(inverse_penalty=0)
    with pytest.raises(ConfigError, match="there is no layer 3"):
        probe(Planted(plant), TRAIN, TEST, ProbeSettings(layers=3))


def test_the_picture_has_a_line_for_the_probe_and_one_for_the_control(result):
    pytest.importorskip("matplotlib")
    (axes,) = draw_probe(result, "label").axes
    assert {"probe", "control task"} <= {line.get_label() for line in axes.lines}
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1", "2", "joined"]
