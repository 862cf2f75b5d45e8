"""Word senses by nearest neighbour: the protocol, the readers, the scorer, and the published score of the back-off."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from sensible_embedder import Sensible

from polyseme.analysis.senses.sense_tagged import (
    Inventory,
    Tag,
    TaggedSentence,
    find_sets,
    read_inventory,
    read_tagged,
)
from polyseme.analysis.senses.wsd import SenseVectors, disambiguate, draw_wsd, embed_tags, first_sense
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.plots import save_figure

SHARED = Path(__file__).parents[4] / "shared" / "eval" / "wsd"
MONEY, RIVER, SIT = "bank%1:14:00::", "bank%1:17:01::", "sit%2:35:00::"
TALL, TALL_ORDER = "tall%3:00:00::", "tall%5:00:00:unlikely:00"
BANK = ("bank", "n")
INVENTORY = Inventory({RIVER: 2, MONEY: 1, SIT: 1, TALL: 2, TALL_ORDER: 1})


def tagged(line, *tags):
    return TaggedSentence(tuple(line.split()), tuple(tags))


TRAINING = [
    tagged("the bank of the river", Tag(BANK, 1, 2, (RIVER,))),
    tagged("a boat by the bank", Tag(BANK, 4, 5, (RIVER,))),
    tagged("the bank lent money", Tag(BANK, 1, 2, (MONEY,))),
]
TESTS = {
    "one": [
        tagged("water near a bank", Tag(BANK, 3, 4, (RIVER,), "a")),
        tagged("an account at a bank", Tag(BANK, 4, 5, (MONEY,), "b")),
    ],
    "two": [tagged("they sit by the river", Tag(("sit", "v"), 1, 2, (SIT, "other%2:00:00::"), "a"))],
}


@pytest.fixture
def gold_is_known():
    return {**TESTS, "two": [tagged("they sit by the river", Tag(("sit", "v"), 1, 2, (SIT,), "a"))]}


def scores(method):
    return {score.name: (score.correct, score.answered, score.instances) for score in method.scores}


def test_the_nearest_sense_wins_and_an_unseen_lemma_gets_the_first(gold_is_known):
    result = disambiguate(Sensible(), TRAINING, gold_is_known, INVENTORY)
    assert [method.name for method in result.methods] == [
        "WordNet's first sense",
        "most frequent in training",
        "layer 0",
        "layer 1",
        "layer 2",
    ]
    first, frequent, _, _, top = map(scores, result.methods)
    assert first == {"one": (1, 2, 2), "two": (1, 1, 1), "ALL": (2, 3, 3)}
    assert frequent == {"one": (1, 2, 2), "two": (1, 1, 1), "ALL": (2, 3, 3)}
    assert top == {"one": (2, 2, 2), "two": (1, 1, 1), "ALL": (3, 3, 3)}
    assert (result.tagged, result.unknown, result.unseen) == (3, 0, 1)


def test_one_layer_can_be_asked_for(gold_is_known):
    every = disambiguate(Sensible(), TRAINING, gold_is_known, INVENTORY)
    one = disambiguate(Sensible(), TRAINING, gold_is_known, INVENTORY, layer=2)
    assert one.methods[-1].scores == every.methods[-1].scores
    assert [method.layer for method in one.methods] == [None, None, 2]


def test_senses_that_are_equally_near_go_by_frequency(gold_is_known):
    layer_0 = disambiguate(Sensible(), TRAINING, gold_is_known, INVENTORY).methods[2]
    assert scores(layer_0)["one"] == (1, 2, 2)  # both are RIVER, the more frequent one in training


def test_a_sense_is_the_mean_of_its_uses():
    senses = SenseVectors()
    senses.learn(Sensible(), TRAINING, INVENTORY)
    vectors = dict(zip(("river", "boat", "money"), Sensible().embed(s.words for s in TRAINING), strict=True))
    means = {RIVER: vectors["river"][:, 1] + vectors["boat"][:, 4], MONEY: vectors["money"][:, 1]}
    query = np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32)
    for layer, answer in enumerate(senses.nearest(BANK, query)):
        cosines = {key: mean[layer] @ query[layer] / np.linalg.norm(mean[layer]) for key, mean in means.items()}
        assert answer == max(cosines, key=cosines.__getitem__)
    assert senses.nearest(("zebra", "n"), query) == []


def test_a_unit_of_several_words_has_the_mean_of_theirs():
    ((_, pooled),) = embed_tags(Sensible(), [tagged("it took place there", Tag(("take_place", "v"), 1, 3, ("x",)))])
    (vectors,) = Sensible().embed([["it", "took", "place", "there"]])
    np.testing.assert_allclose(pooled, vectors[:, 1:3].mean(axis=1), atol=1e-6)


def test_an_instance_without_an_answer_costs_recall_only():
    method = first_sense(
        {"x": [tagged("a bank", Tag(("banco", "n"), 1, 2, (MONEY,)), Tag(BANK, 1, 2, (MONEY,)))]}, INVENTORY
    )
    (score,) = method.scores
    assert (score.correct, score.answered, score.instances) == (1, 1, 2)
    assert score.f1 == pytest.approx(2 * 1 * 0.5 / 1.5)


def test_adjectives_of_both_kinds_share_their_numbers():
    assert INVENTORY.first_sense(("tall", "a")) == TALL_ORDER


def test_all_is_shown_with_and_without_the_development_set():
    sets = {name: [tagged("a bank", Tag(BANK, 1, 2, (MONEY,)))] for name in ("semeval2007", "x", "y")}
    assert [score.name for score in first_sense(sets, INVENTORY).scores] == [*sets, "ALL", "ALL but semeval2007"]


def test_a_picture_is_drawn(gold_is_known, tmp_path):
    save_figure(draw_wsd(disambiguate(Sensible(), TRAINING, gold_is_known, INVENTORY)), tmp_path / "wsd.png")
    assert (tmp_path / "wsd.png").stat().st_size > 5000


# Faults


def test_unknown_keys_in_a_test_set_are_one_sentence():
    with pytest.raises(FormatError, match="two: 1 of 2 sense keys are not in the inventory, such as 'other%2:00:00::'"):
        disambiguate(Sensible(), TRAINING, TESTS, INVENTORY)


def test_unknown_keys_in_training_are_counted_and_too_many_refused(gold_is_known):
    strange = [tagged("a bank", Tag(BANK, 1, 2, ("bank%1:99:99::",)))]
    result = disambiguate(Sensible(), [*TRAINING, *strange], gold_is_known, INVENTORY)
    assert (result.tagged, result.unknown) == (3, 1)
    with pytest.raises(FormatError, match="4 of 7 tagged words have sense keys that are not in the inventory"):
        disambiguate(Sensible(), [*TRAINING, *strange * 4], gold_is_known, INVENTORY)


def test_empty_sets_are_one_sentence_each(gold_is_known):
    with pytest.raises(InputError, match="training corpus has no sense tags"):
        disambiguate(Sensible(), [], gold_is_known, INVENTORY)
    with pytest.raises(InputError, match="x: no word in this set has a sense tag"):
        disambiguate(Sensible(), TRAINING, {"x": [tagged("no tags")]}, INVENTORY)
    with pytest.raises(ConfigError, match="no test set"):
        disambiguate(Sensible(), TRAINING, {}, INVENTORY)


# Files


def test_semcor_units_are_split_and_double_tags_taken_apart(tmp_path):
    senses = [
        {"i": 1, "n": 1, "lemma": "take_place", "pos": "VB", "key": "take_place%2:30:00::", "ok": True},
        {"i": 2, "key": "year%1:28:02::;1:28:01::"},
        {"i": 3, "key": "previous%5:00:00:preceding(a):00"},
    ]
    path = tmp_path / "semcor.jsonl.xz"
    with lzma.open(path, "wt") as file:
        file.write(json.dumps({"tokens": ["It", "took_place", "year", "previous", "_"], "senses": senses}) + "\n\n")
    (sentence,) = read_tagged(path)
    assert sentence.words == ("It", "took", "place", "year", "previous", "_")
    assert sentence.tags[0] == Tag(("take_place", "v"), 1, 3, ("take_place%2:30:00::",))
    assert sentence.tags[1] == Tag(("year", "n"), 3, 4, ("year%1:28:02::", "year%1:28:01::"))
    assert sentence.tags[2].keys == ("previous%5:00:00:preceding:00",)


XML = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en"><text id="d0"><sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d0.s0.t0" lemma="Bank" pos="NOUN">river bank</instance>
<wf lemma="'" pos=".">&apos;</wf>
</sentence></text></corpus>
"""


def write_set(folder, name="demo", xml=XML, keys=f"d0.s0.t0 {RIVER} {MONEY}\n"):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.data.xml").write_text(xml)
    (folder / f"{name}.gold.key.txt").write_text(keys)
    return folder / f"{name}.data.xml"


def test_the_unified_frameworks_sets_are_read(tmp_path):
    (sentence,) = read_tagged(write_set(tmp_path / "demo"))
    assert sentence.words == ("The", "river", "bank", "'")
    assert sentence.tags == (Tag(BANK, 1, 3, (RIVER, MONEY), "d0.s0.t0"),)


def test_sets_below_a_folder_are_found_and_all_is_not_counted_twice(tmp_path):
    paths = {name: write_set(tmp_path / name, name) for name in ("ALL", "a", "b")}
    assert find_sets([tmp_path]) == {name: paths[name] for name in ("a", "b")}
    assert find_sets([paths["ALL"]]) == {"ALL": paths["ALL"]}
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="no test set below"):
        find_sets([tmp_path / "none"])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("not json", "line 1 is not a tagged sentence"),
        ('{"tokens": ["a"]}', r"line 1 is not a tagged sentence: '\{\"tokens"),
        ("[1, 2]", "line 1 is not a tagged sentence"),
        ('{"tokens": "a b", "senses": []}', "line 1 is not a tagged sentence"),
        ('{"tokens": ["a"], "senses": [{"i": 1, "key": "a%1:00:00::"}]}', "a tag for token 1, but 1 tokens"),
        ('{"tokens": ["a"], "senses": [{"i": 0, "key": "nonsense"}]}', "line 1: 'nonsense' is not a sense key"),
    ],
)
def test_a_damaged_tagged_corpus_is_one_sentence(tmp_path, text, fault):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(FormatError, match=fault):
        list(read_tagged(tmp_path / "x.jsonl"))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"xml": XML[:200]}, "not the XML"),
        ({"keys": "d9 x%1:00:00::\n"}, "'d0.s0.t0' has no key in demo.gold.key.txt"),
        ({"xml": XML.replace("NOUN", "DET")}, "needs a lemma and a pos"),
    ],
)
def test_a_damaged_test_set_is_one_sentence(tmp_path, changes, fault):
    with pytest.raises(FormatError, match=fault):
        list(read_tagged(write_set(tmp_path / "demo", **changes)))


def test_a_set_without_its_keys_is_told(tmp_path):
    path = write_set(tmp_path / "demo")
    (tmp_path / "demo" / "demo.gold.key.txt").unlink()
    with pytest.raises(InputError, match=r"demo\.gold\.key\.txt: no such file"):
        list(read_tagged(path))


def test_wordnets_index_is_read(tmp_path):
    path = tmp_path / "index.sense"
    path.write_text(f"{RIVER} 09213565 2 20\n{MONEY} 08420278 1 25\n")
    inventory = read_inventory(path)
    assert inventory.first_sense(BANK) == MONEY
    assert RIVER in inventory
    path.write_text("bank money river\n")
    with pytest.raises(FormatError, match=r"line 1 is not a line of WordNet's index\.sense"):
        read_inventory(path)
    path.write_text("")
    with pytest.raises(FormatError, match="no senses in there"):
        read_inventory(path)


# The published figures


@pytest.fixture(scope="module")
def wsd_data() -> Path:
    if not SHARED.is_dir():
        pytest.skip("needs the unified framework's test sets and WordNet's sense index, in ../shared/eval/wsd")
    return SHARED


def test_the_back_off_alone_gives_the_published_first_sense_score(wsd_data):
    """Raganato et al. (2017) print WordNet's first sense as 66.8, 66.2, 55.2, 63.0, 67.8 and 65.2 on ALL."""
    inventory = read_inventory(wsd_data / "wordnet-3.0-index.sense.xz")
    sets = {name: list(read_tagged(path)) for name, path in find_sets([wsd_data / "raganato"]).items()}
    f1 = {score.name: round(100 * score.f1, 1) for score in first_sense(sets, inventory).scores}
    assert f1 == {
        "senseval2": 66.8,
        "senseval3": 66.2,
        "semeval2007": 55.2,
        "semeval2013": 63.0,
        "semeval2015": 67.8,
        "ALL": 65.2,
        "ALL but semeval2007": 65.9,
    }
    together = {"ALL": list(read_tagged(wsd_data / "raganato" / "ALL" / "ALL.data.xml"))}
    assert round(100 * first_sense(together, inventory).scores[0].f1, 1) == f1["ALL"]
