"""Word in context (WiC): the reader, the threshold, the interval and the accuracy."""

import numpy as np
import pytest
from planted_senses import OneLayer, Planted, noise

from polyseme.analysis.senses.wic import WicPair, best_threshold, draw_wic, read_wic, wic
from polyseme.errors import FormatError, InputError, PolysemeError

DATA = "board\tN\t2-1\tRoom and board .\tThe boards creak .\ngo\tV\t0-2\tGo on .\tThey must go now\n"


def write(folder, data=DATA, gold="F\nT\n", name="dev.data.txt"):
    (folder / name).write_text(data)
    (folder / name.replace("data", "gold")).write_text(gold)
    return folder / name


def pairs(count, seed):
    """The words a and b mean what the other word of the sentence says."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        word, senses = random.choice(["a", "b"]), random.integers(3, size=2)
        first, second = ((word, f"s{sense}") for sense in senses)
        made.append(WicPair(word, first, second, (0, 0), bool(senses[0] == senses[1])))
    return made


def sense(words, place):
    return noise(words[-1], dim=8)


def test_pairs_are_read_with_their_answers(tmp_path):
    first, second = read_wic(write(tmp_path))
    assert first == WicPair("board", ("Room", "and", "board", "."), ("The", "boards", "creak", "."), (2, 1), False)
    assert (second.places, second.same) == ((0, 2), True)


def test_the_layer_that_knows_senses_is_right_and_the_others_are_at_chance():
    result = wic(Planted(sense), pairs(300, 0), pairs(200, 1))
    by_layer = {row.layer: row for row in result.layers}
    assert by_layer[1].accuracy == 1
    assert by_layer[0].accuracy == pytest.approx(result.chance)
    assert by_layer[0].low < result.chance < by_layer[0].high
    assert result.chance == 1 - np.mean([pair.same for pair in pairs(200, 1)]) > 0.5


def test_one_layer_is_one_row():
    assert len(wic(OneLayer(), pairs(20, 0), pairs(10, 1)).layers) == 1


@pytest.mark.parametrize(
    ("cosines", "same", "low", "high", "reached"),
    [
        ([0.1, 0.2, 0.8, 0.9], [False, False, True, True], 0.2, 0.8, 1),
        ([0.1, 0.2, 0.8, 0.9], [False, True, False, True], 0.1, 0.9, 0.75),
        ([1, 1, 1], [True, True, False], -9, 1, 2 / 3),
        ([1, 1, 1], [True, False, False], 1, 9, 2 / 3),
        ([0.5], [True], -9, 0.5, 1),
    ],
)
def test_the_best_threshold(cosines, same, low, high, reached):
    threshold, share = best_threshold(np.array(cosines, dtype=float), np.array(same))
    assert low <= threshold <= high
    assert share == reached
    assert ((np.array(cosines) > threshold) == np.array(same)).mean() == reached


@pytest.mark.parametrize(
    ("data", "gold", "error", "message"),
    [
        ("", "", InputError, "is empty"),
        (DATA, "F\n", FormatError, "has 2 pairs, but its gold file has 1 answers"),
        (DATA, "F\nT\nT\n", FormatError, "has 2 pairs, but its gold file has 3 answers"),
        (DATA, "F\nyes\n", FormatError, "line 2: expected T or F, got 'yes'"),
        (DATA.replace("2-1", "2-4"), "F\nT\n", FormatError, "place 4 is outside the second sentence, whose 4 words"),
        (DATA.replace("0-2", "3-2"), "F\nT\n", FormatError, "line 2: place 3 is outside the first sentence"),
        (DATA.replace("2-1", "-1-1"), "F\nT\n", FormatError, "expected two places, numbers from 0"),
        (DATA.replace("2-1", "two"), "F\nT\n", FormatError, "expected two places, numbers from 0, like 2-5; got 'two'"),
        (DATA.replace("\t", " "), "F\nT\n", FormatError, "has 1 columns; expected 5, separated by tabs"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(tmp_path, data, gold, error, message):
    with pytest.raises(PolysemeError, match=message) as refused:
        read_wic(write(tmp_path, data, gold))
    assert isinstance(refused.value, error)
    assert str(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_answers_are_looked_for_by_name(tmp_path):
    (tmp_path / "pairs.txt").write_text(DATA)
    with pytest.raises(InputError, match=r"name the files X\.data\.txt"):
        read_wic(tmp_path / "pairs.txt")
    (tmp_path / "pairs.data.txt").write_text(DATA)
    with pytest.raises(InputError, match=r"pairs\.gold\.txt: no such file"):
        read_wic(tmp_path / "pairs.data.txt")


def test_empty_sets_are_refused():
    with pytest.raises(InputError, match="the training set has no pairs"):
        wic(Planted(), [], pairs(3, 0))
    with pytest.raises(InputError, match="the test set has no pairs"):
        wic(Planted(), pairs(3, 0), [])


def test_the_picture_has_a_point_for_each_layer():
    pytest.importorskip("matplotlib")
    (axes,) = draw_wic(wic(Planted(sense), pairs(30, 0), pairs(30, 1))).axes
    assert len(axes.lines[0].get_xdata()) == 3
