"""How the text is read: everything once, in order, both ways, and from any place on."""

import pytest
import torch
from training_fixture import make_shards

from polyseme.text.word_encoder import ByteCharacters, WordEncoder
from polyseme.training.loop.distributed import ProcessGroup
from polyseme.training.loop.windows import Windows
from polyseme.training.settings import LoopSettings

BOS, EOS = "<S>", "</S>"


def make_windows(shards, processes=ProcessGroup(), **loop):  # noqa: B008
    vocabulary, _ = shards.vocabulary()
    settings = LoopSettings(**({"rows": 4, "window": 5, "fresh_rows": 0.0, "forget": 0.0} | loop))
    return Windows(shards, WordEncoder(ByteCharacters(20)), vocabulary, settings, processes, torch.device("cpu"))


def read(windows, step):
    """One window, as words read and words to predict, by direction and row."""
    window = windows.next_window(step)
    spellings = [_spell(ids.tolist()) for ids in window.characters]
    steps, rows = window.places.shape[1:]
    inputs = [[[spellings[i] for i in window.places[d, :, b].tolist()] for b in range(rows)] for d in range(2)]
    vocabulary = windows._vocabulary
    targets = window.targets.view(2, steps, rows)
    wanted = [[vocabulary.decode(targets[d, :, b].tolist()) for b in range(rows)] for d in range(2)]
    return inputs, wanted, window.keep


def _spell(ids):
    inside = ids[1 : ids.index(ByteCharacters.end)]
    boundary = {ByteCharacters.bos: BOS, ByteCharacters.eos: EOS}.get(inside[0])
    return boundary or bytes(inside).decode()


def all_sentences(shards):
    found = []
    for number in range(len(shards)):
        tokens, words, _ = shards[number]
        sentence = []
        for token in tokens.tolist():
            if token:
                sentence.append(words[token])
            else:
                found.append(sentence)
                sentence = []
    return found


@pytest.mark.parametrize("direction", [0, 1])
def test_rows_read_running_text_and_predict_what_they_read_next(tmp_path, direction):
    shards = make_shards(tmp_path)
    windows = make_windows(shards)
    texts, targets = [[] for _ in range(4)], [[] for _ in range(4)]
    for step in range(windows.windows_per_epoch):
        inputs, wanted, _ = read(windows, step)
        for row in range(4):
            texts[row] += inputs[direction][row]
            targets[row] += wanted[direction][row]
    opening, closing = (BOS, EOS) if direction == 0 else (EOS, BOS)
    sentences = {tuple(sentence if direction == 0 else sentence[::-1]) for sentence in all_sentences(shards)}
    for text, wanted in zip(texts, targets, strict=True):
        assert text[0] == opening
        assert closing not in text
        assert [closing if word == opening else word for word in text[1:]] == wanted[:-1]
        joined = " ".join(text).split(opening)[1:-1]
        assert joined
        assert all(tuple(sentence.split()) in sentences for sentence in joined)


def test_an_epoch_reads_nearly_everything_once(tmp_path):
    shards = make_shards(tmp_path)
    windows = make_windows(shards, rows=2)
    seen = sum(len(row) for step in range(windows.windows_per_epoch) for row in read(windows, step)[0][0])
    assert shards.num_tokens - 10 < seen <= shards.num_tokens
    assert windows.epochs == pytest.approx(1)


def test_fresh_rows_begin_with_a_sentence_and_forget(tmp_path):
    windows = make_windows(make_shards(tmp_path), fresh_rows=0.5)
    for step in range(40):
        inputs, _, keep = read(windows, step)
        for direction, opening in enumerate((BOS, EOS)):
            assert [inputs[direction][row][0] for row in (1, 3)] == [opening] * 2
        assert keep[:, [1, 3]].sum() == 0
        assert step == 0 or keep[:, [0, 2]].min() == 1


def test_documents_are_forgotten_when_asked(tmp_path):
    shards = make_shards(tmp_path)
    kept = {
        asked: sum(int(read(windows, step)[2].sum()) for step in range(30))
        for asked in (False, True)
        for windows in [make_windows(shards, forget_documents=asked)]
    }
    assert kept[False] == 29 * 8
    assert 0 < kept[True] < kept[False]


@pytest.mark.parametrize("shard_tokens", [200, 1 << 20])
def test_reading_goes_on_from_any_place(tmp_path, shard_tokens):
    shards = make_shards(tmp_path, shard_tokens)
    settings = {"fresh_rows": 0.5, "forget": 0.3, "forget_documents": True}
    whole = make_windows(shards, **settings)
    expected = [read(whole, step) for step in range(3 * whole.windows_per_epoch)]
    for cut in (1, whole.windows_per_epoch - 1, whole.windows_per_epoch, whole.windows_per_epoch + 3):
        first, second = make_windows(shards, **settings), make_windows(shards, **settings)
        for step in range(cut):
            read(first, step)
        second.restore(*first.position())
        for step in range(cut, len(expected)):
            inputs, wanted, keep = read(second, step)
            assert (inputs, wanted) == expected[step][:2]
            assert torch.equal(keep, expected[step][2])


def test_two_processes_share_the_rows_of_one(tmp_path):
    shards = make_shards(tmp_path)
    settings = {"fresh_rows": 0.5, "forget": 0.3}
    alone = make_windows(shards, **settings)
    halves = [make_windows(shards, ProcessGroup(rank, 2), **settings) for rank in range(2)]
    for step in range(20):
        inputs, wanted, keep = read(alone, step)
        parts = [read(half, step) for half in halves]
        for direction in range(2):
            assert parts[0][0][direction] + parts[1][0][direction] == inputs[direction]
            assert parts[0][1][direction] + parts[1][1][direction] == wanted[direction]
        assert torch.equal(torch.cat([part[2] for part in parts], dim=1), keep)


def test_every_epoch_begins_elsewhere(tmp_path):
    windows = make_windows(make_shards(tmp_path))
    first = read(windows, 0)[0]
    for step in range(1, windows.windows_per_epoch):
        read(windows, step)
    assert read(windows, 0)[0] != first


def test_a_text_shorter_than_a_window_is_read_round_and_round(tmp_path):
    windows = make_windows(make_shards(tmp_path, sentences=12), window=300, rows=2, fresh_rows=0.5)
    for step in range(5):
        inputs, _, _ = read(windows, step)
        assert len(inputs[0][0]) == 300
