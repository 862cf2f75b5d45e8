"""Learning from a teacher's vectors: which words it teaches, what the gradient is, and that a run resumes exactly."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from tiny_models import make_encoder
from training_fixture import make_job, make_shards, make_trainer, settings_of
from transformer_models import make_transformer

from polyseme.errors import ConfigError
from polyseme.formats import open_model
from polyseme.text.word_encoder import ByteCharacters, WordEncoder
from polyseme.training.loop.checkpoint import load_checkpoint, save_checkpoint
from polyseme.training.loop.distributed import ProcessGroup
from polyseme.training.loop.learner import Learner
from polyseme.training.loop.teacher import TeacherLoss, pair_layers
from polyseme.training.loop.windows import BOUNDARY, Windows
from polyseme.training.run import train
from polyseme.training.settings import LoopSettings, TeacherSettings


class Numbers:
    """A teacher whose vector of the word w7 is 7, in two layers."""

    def __init__(self):
        self.sentences = []

    def vectors(self, sentences):
        self.sentences.append(sentences)
        numbers = [float(word[1:]) for sentence in sentences for word in sentence]
        return torch.tensor(numbers).reshape(1, -1, 1).expand(2, -1, 3)


def make_windows(shards, teacher, rows, **loop):
    vocabulary, _ = shards.vocabulary()
    settings = LoopSettings(**({"rows": 8, "window": 16, "fresh_rows": 0.5} | loop))
    spelling = WordEncoder(ByteCharacters(20))
    return Windows(shards, spelling, vocabulary, settings, ProcessGroup(), torch.device("cpu"), teacher, rows)


@pytest.mark.parametrize("shard_tokens", [300, 1 << 20])
def test_a_taught_word_is_read_by_both_directions_where_its_place_says(tmp_path, shard_tokens):
    shards = make_shards(tmp_path, shard_tokens)
    teacher = Numbers()
    windows = make_windows(shards, teacher, rows=3)
    words = 0
    for step in range(3 * windows.windows_per_epoch):
        window = windows.next_window(step)
        for direction, places in enumerate(window.taught):
            characters = window.characters[window.places[direction].flatten()[places]].tolist()
            read = [bytes(ids[1 : ids.index(ByteCharacters.end)]).decode() for ids in characters]
            assert read == [f"w{int(number)}" for number in window.lessons[0, :, 0].tolist()]
        words += window.taught.shape[1]
    assert words > 5 * 3 * windows.windows_per_epoch
    whole = {tuple(sentence) for sentence in _sentences(shards)}
    assert all(tuple(sentence) in whole for window in teacher.sentences for sentence in window)


def test_without_a_teacher_the_same_windows_are_read(tmp_path):
    shards = make_shards(tmp_path)
    plain, taught = make_windows(shards, None, 0), make_windows(shards, Numbers(), rows=2)
    for step in range(10):
        one, other = plain.next_window(step), taught.next_window(step)
        assert one.lessons is None
        assert other.lessons is not None
        assert torch.equal(one.targets[0], other.targets[0])  # the forward direction is as it was


def test_the_gradient_is_that_of_the_mean_distance(tmp_path):
    """Against autograd through the whole model, which the learner takes apart by direction."""
    shards = make_shards(tmp_path)
    settings = settings_of(dropout=0.0)
    trainer = make_trainer(shards, settings, teacher=make_encoder(), lessons=TeacherSettings(weight=3.0))
    model, loss = trainer.model, trainer._learner.teacher
    window = trainer._windows.next_window(0)
    states = trainer._learner.initial_states(4)
    predictions = 2 * 4 * 5
    result = trainer._learner.compute_gradients(window, states, predictions, 0)
    with_teacher = [parameter.grad.clone() for parameter in model.bilm.parameters()]
    maps = [parameter.grad.clone() for parameter in loss.parameters()]
    plain = Learner(model.bilm, model.head, trainer._learner.loss, 0.0, "float32")
    plain.compute_gradients(window, states, predictions, 0)
    without = [parameter.grad.clone() for parameter in model.bilm.parameters()]

    model.bilm.zero_grad()
    loss.zero_grad()
    distance = _distance(model.bilm, loss, window)
    (3.0 * distance.sum()).backward()
    assert float(result.distance) == pytest.approx(float(distance.detach().mean()), abs=1e-6)
    for parameter, one, other in zip(model.bilm.parameters(), with_teacher, without, strict=True):
        torch.testing.assert_close(parameter.grad, one - other, rtol=1e-4, atol=1e-5)
    for parameter, one in zip(loss.parameters(), maps, strict=True):
        torch.testing.assert_close(parameter.grad, one, rtol=1e-4, atol=1e-6)


def _distance(bilm, loss, window):
    from polyseme.model.bilm import read_layers

    vectors = bilm.inputs[0](window.characters, window.character_lengths, window.ids)
    layers = [read_layers(bilm, way, vectors[window.places[way]])[0] for way in range(2)]
    halves = [[layer.flatten(0, 1)[window.taught[way]] for layer in layers[way][1:]] for way in range(2)]
    joined = [torch.cat(pair, dim=1) for pair in zip(*halves, strict=True)]
    mapped = [to(each) for to, each in zip(loss.maps, joined, strict=True)]
    return torch.stack(
        [(1 - F.cosine_similarity(each, lesson)).mean() for each, lesson in zip(mapped, window.lessons, strict=True)]
    )


def test_the_distance_to_a_teacher_falls(tmp_path):
    shards = make_shards(tmp_path)
    settings = settings_of(steps=60, rows=16, window=12, learning_rate=0.02, dropout=0.0)
    trainer = make_trainer(shards, settings, teacher=make_transformer())
    distances = [trainer.take_step().teacher_distance for _ in range(60)]
    assert sum(distances[-10:]) < 0.7 * sum(distances[:10])


def test_a_run_with_a_teacher_resumes_to_the_last_bit(tmp_path):
    shards = make_shards(tmp_path)
    settings = settings_of(steps=20, fresh_rows=0.5, window=9)
    whole, first, second = (make_trainer(shards, settings, teacher=make_encoder()) for _ in range(3))
    expected = [whole.take_step().loss for _ in range(20)]
    assert [first.take_step().loss for _ in range(9)] == expected[:9]
    save_checkpoint(first.checkpoint(), tmp_path / "last")
    second.restore(load_checkpoint(tmp_path / "last"))
    assert [second.take_step().loss for _ in range(11)] == expected[9:]


def test_a_window_without_whole_sentences_teaches_nothing():
    loss = TeacherLoss(8, 5, ((1, 1),), 1.0)
    layers = [[torch.zeros(3, 2, 4), torch.ones(3, 2, 4)]] * 2
    distance, taught = loss.gradients(layers, torch.zeros(2, 0, dtype=torch.int64), torch.zeros(1, 0, 5), 1.0)
    assert float(distance) == 0
    assert taught == [([], []), ([], [])]
    assert all(torch.equal(parameter.grad, torch.zeros_like(parameter)) for parameter in loss.parameters())


@pytest.mark.parametrize(
    ("teacher_layers", "expected"), [(7, ((1, 3), (2, 5))), (13, ((1, 6), (2, 10))), (3, ((1, 1), (2, 2)))]
)
def test_layers_learn_from_layers_at_the_same_depth(teacher_layers, expected):
    assert pair_layers(TeacherSettings(), 3, teacher_layers) == expected


def test_a_layer_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="the teacher 0 to 2"):
        pair_layers(TeacherSettings(layers=((1, 3),)), 3, 3)


def test_a_run_needs_fresh_rows_and_the_same_teacher(tmp_path):
    job = replace(make_job(tmp_path), teacher=make_encoder())
    with pytest.raises(ConfigError, match="fresh_rows"):
        list(train(replace(job, changes={**job.changes, "training": {"fresh_rows": 0.0}})))
    with pytest.raises(ConfigError, match="--teacher"):
        list(train(replace(job, teacher=None, changes={**job.changes, "teacher": {"weight": 1.0}})))
    events = train(job)
    for event in events:
        if getattr(event, "step", 0) == 3:
            events.close()
    with pytest.raises(ConfigError, match=r"teacher\.model"):
        list(train(replace(job, resume=True, teacher=make_encoder(seed=1))))
    *_, end = train(replace(job, resume=True))
    assert end.step == 12
    assert not any("teacher" in name for name in open_model(job.output).weights)


def _sentences(shards):
    for number in range(len(shards)):
        tokens, words, _ = shards[number]
        sentence = []
        for token in tokens.tolist():
            if token != BOUNDARY:
                sentence.append(words[token])
            else:
                yield sentence
                sentence = []
