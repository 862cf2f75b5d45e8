"""``index``, ``neighbours``, ``senses``, ``wsd`` and ``drift`` as people run them."""

import json
from pathlib import Path

import pytest
from sensible_embedder import SENTENCES

TINY = str(Path(__file__).parents[1] / "fixtures" / "tiny")
QUESTION = ("neighbours", "He sat on the river bank .", "--word", "bank", "--model", TINY)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("".join(f"{' '.join(words)}\n" for words in SENTENCES))
    return path


@pytest.fixture
def index(call, corpus, tmp_path):
    assert call("index", corpus, "-o", tmp_path / "index", "--model", TINY)[0] == 0
    return tmp_path / "index"


def test_neighbours_come_from_the_bundled_sentences(call):
    status, out, _ = call(*QUESTION, "--top", 3)
    assert status == 0
    assert out.count("[bank]") == 4
    assert "among 15 uses" in out


def test_neighbours_from_corpus_and_index_are_the_same(call, corpus, index):
    _, direct, _ = call(*QUESTION, "--corpus", corpus, "--json", "-")
    _, indexed, _ = call(*QUESTION[:4], "--index", index, "--json", "-")
    uses = [[found["use"] for found in json.loads(out)["results"][0]["found"]] for out in (direct, indexed)]
    assert len(uses[0]) == 8
    assert uses[0] == uses[1]


def test_every_layer_has_a_table(call, index):
    assert call(*QUESTION[:4], "--index", index, "--layer", "all")[1].count("most similar") == 3


def test_all_words_are_searched_in_an_index(call, index, corpus):
    _, out, _ = call(*QUESTION, "--index", index, "--all-words", "--json", "-")
    assert json.loads(out)["results"][0]["compared"] == sum(map(len, SENTENCES))
    status, _, err = call(*QUESTION, "--corpus", corpus, "--all-words")
    assert status == 2
    assert "index it first" in err


def test_static_neighbours_stand_beside(call, tmp_path, monkeypatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))
    (tmp_path / "v.txt").write_text("bank 1 0 0.1\nmoney 1 0.1 0\nriver 0 1 0\n")
    status, out, _ = call(*QUESTION, "--static", tmp_path / "v.txt", "--top", 1)
    assert status == 0
    assert "money" in out


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("neighbours", "A bank .", "--word", "tree", "--model", TINY), "'tree' is not in the sentence"),
        (("neighbours", "bank to bank", "--word", "bank", "--model", TINY), "occurs 2 times"),
        (
            ("neighbours", "A zebra .", "--word", "zebra", "--model", TINY),
            "has the word 'zebra'; search a text of your own with --corpus",
        ),
        ((*QUESTION, "--top", "0"), "--top must be 1 or more"),
        ((*QUESTION, "--layer", "9"), "there is no layer 9"),
        ((*QUESTION, "--index", "nowhere"), "is not an index"),
        ((*QUESTION, "--index", TINY + "/config.json"), "is not an index"),
        (("neighbours", "", "--word", "bank", "--model", TINY), "the sentence is empty"),
        (("senses", "zebra", "--model", TINY), "has the word 'zebra'; search a text of your own with --corpus"),
        (("senses", "bank", "--model", TINY, "--plot", "x.doc"), "ends in .png"),
        (("drift", "-", "-", "--model", TINY), "only once"),
        (("drift", TINY, TINY, "--model", TINY, "--layer", "all"), "expected one layer, not all"),
    ],
)
def test_faults_are_one_line(call, arguments, fault):
    status, _, err = call(*arguments)
    assert status == 2
    assert fault in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (*QUESTION, "--limit", "0"),
        ("senses", "bank", "--model", TINY, "--limit", "-1"),
        ("index", TINY, "-o", "x", "--model", TINY, "--limit", "-1"),
        ("drift", TINY, TINY, "--model", TINY, "--limit", "-1"),
        ("drift", TINY, TINY, "--model", TINY, "--skip", "-1"),
        ("wsd", TINY, "--train", "x", "--test", "x", "--inventory", "x", "--limit", "-1"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_by_its_name(call, arguments):
    status, _, err = call(*arguments)
    assert status == 2
    assert f"Invalid value for '{arguments[-2]}'" in err


def test_an_empty_corpus_to_index_is_one_line(call, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    status, _, err = call("index", tmp_path / "empty.txt", "-o", tmp_path / "index", "--model", TINY)
    assert (status, err) == (2, "error: there are no words to index; the corpus is empty\n")


def test_a_mix_is_shown_as_it_is_typed(call):
    assert "tiny, layer 0.2,0.3,0.5, among" in call(*QUESTION, "--layer", "0.2,0.3,0.5")[1]


def test_an_interruption_is_told(call, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("polyseme.corpus.uses.find_uses", interrupt)
    assert call(*QUESTION)[::2] == (130, "interrupted\n")


def test_an_index_of_another_model_is_one_line(call, index, tmp_path, monkeypatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))
    (tmp_path / "v.txt").write_text("bank 1 0 0.1\nmoney 1 0.1 0\n")
    status, _, err = call(*QUESTION[:4], "--model", tmp_path / "v.txt", "--index", index)
    assert status == 2
    assert "was built with 'tiny' (3 layers of 32), not with 'v.txt' (1 layer of 3)" in err


def test_an_interrupted_index_says_how_to_go_on(call, corpus, tmp_path, monkeypatch):
    from polyseme.corpus.index_job import IndexJob

    run = IndexJob.run

    def stop_early(job, sentences):
        for number, words in enumerate(run(job, sentences)):
            if number == 3:
                raise KeyboardInterrupt
            yield words

    with monkeypatch.context() as patched:
        patched.setattr(IndexJob, "run", stop_early)
        status, _, err = call("index", corpus, "-o", tmp_path / "index", "--model", TINY)
    assert status == 130
    assert "4 sentences are kept; the same command with --resume continues" in err
    assert call("index", corpus, "-o", tmp_path / "index", "--model", TINY, "--resume")[0] == 0
    assert "among 8 uses" in call(*QUESTION[:4], "--index", tmp_path / "index")[1]


def test_senses_are_shown_and_drawn(call, tmp_path):
    status, out, _ = call("senses", "bank", "--model", TINY, "--clusters", 2, "--plot", tmp_path / "bank.png")
    assert status == 0
    assert "bank: 15 uses, tiny, layer top; silhouette" in out
    assert out.count("typical") == 2
    assert (tmp_path / "bank.png").stat().st_size > 5000


def test_a_layer_without_context_does_not_stop_the_others(call):
    status, out, _ = call("senses", "bank", "--model", TINY, "--clusters", 2, "--layer", "all")
    assert status == 0
    assert "layer 0; all the same" in out
    assert "layer 2; silhouette" in out
    assert call("senses", "bank", "--model", TINY, "--clusters", 2, "--layer", 0)[0] == 2


def test_senses_as_json(call):
    found = json.loads(call("senses", "bank", "--model", TINY, "--layer", "all", "--json", "-")[1])
    assert [layer["layer"] for layer in found["layers"]] == [0, 1, 2]
    assert len(found["uses"]) == len(found["layers"][2]["labels"]) == 15


def test_wsd_is_scored(call, tmp_path):
    money, river = "bank%1:14:00::", "bank%1:17:01::"
    (tmp_path / "index.sense").write_text(f"{money} 08420278 1 25\n{river} 09213565 2 20\n")
    rows = [(["the", "bank", "lent", "it"], 1, money), (["a", "river", "bank"], 2, river)]
    lines = [json.dumps({"tokens": words, "senses": [{"i": i, "key": key}]}) for words, i, key in rows]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    instance = '<instance id="t" lemma="bank" pos="NOUN">bank</instance>'
    (tmp_path / "x.data.xml").write_text(f"<corpus><text><sentence>{instance}</sentence></text></corpus>")
    (tmp_path / "x.gold.key.txt").write_text(f"t {money}\n")
    options = ("--train", tmp_path / "train.jsonl", "--test", tmp_path, "--inventory", tmp_path / "index.sense")
    status, out, _ = call("wsd", TINY, *options)
    assert status == 0
    assert "WordNet's first sense      100.0" in out
    assert "learned from 2 tagged words" in out
    methods = json.loads(call("wsd", TINY, *options, "--json", "-", "--layer", 1)[1])["methods"]
    assert [method["layer"] for method in methods] == [None, None, 1]
    assert methods[0]["scores"][0]["f1"] == 1.0


def test_drift_is_shown(call, corpus, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text(corpus.read_text().replace("river", "sea"))
    options = ("--model", TINY, "--least", 3, "--skip", 0, "--top", 1)
    status, out, _ = call("drift", corpus, other, *options, "--json", tmp_path / "drift.json")
    assert status == 0
    changes = json.loads((tmp_path / "drift.json").read_text())["changes"]
    assert changes[0]["word"] in out
    assert {change["word"] for change in changes} == {"the", "bank", "a"}
