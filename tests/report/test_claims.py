"""What the report concludes from numbers that are known."""

import json
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from planted import Planted, noise

from polyseme.errors import ConfigError, FormatError
from polyseme.report.claim import Findings
from polyseme.report.claims import claim_01_context as context
from polyseme.report.claims import claim_02_tense as tense
from polyseme.report.claims import claim_04_syntax_and_meaning as syntax_and_meaning
from polyseme.report.claims import claim_05_layer_mixing as layer_mixing
from polyseme.report.claims import claim_06_labelled_data as labelled_data
from polyseme.report.claims import claim_07_fine_tuning as fine_tuning
from polyseme.report.claims import claim_08_directions as directions
from polyseme.report.claims import claim_09_documents as documents
from polyseme.report.claims import claim_10_transformer_layers as transformer_layers
from polyseme.report.claims import claim_11_task_gains as task_gains
from polyseme.report.measure.filters import common_letters
from polyseme.report.measure.result_store import ResultStore, as_json
from polyseme.report.measure.separation import _auc
from polyseme.report.measure.statistics import bootstrap_interval, sign_test
from polyseme.report.measure.task_results import difference, read_results, results_of_model
from polyseme.report.page.content import FAILED, HELD, UNTESTED, ExampleSentences, Paragraph, PassRule, Verdict
from polyseme.report.page.drawing import Bar, bar_chart, line_chart
from polyseme.report.page.html import ClaimSection, Page, inline, write_page
from polyseme.report.tour import write_opening


def given(missing=(), **found):
    return Findings("model", "model", "data", False, found, dict(missing))


def test_the_sign_test_counts_only_where_the_two_differ():
    wins = np.array([True] * 5 + [True] * 90)
    none = np.array([False] * 5 + [True] * 90)
    assert sign_test(wins, none) == pytest.approx(2 / 2**5)
    assert sign_test(none, wins) == pytest.approx(2 / 2**5)
    assert sign_test(wins, wins) == 1
    many = np.arange(40_000) % 3 > 0
    assert sign_test(many, ~many) < 1e-300


def test_an_interval_holds_what_it_is_of_and_is_drawn_the_same_again():
    values = np.random.default_rng(0).normal(3, 1, 200)
    first, second = (bootstrap_interval(lambda drawn: float(values[drawn].mean()), 200, 7) for _ in range(2))
    assert first == second
    assert first[0] < values.mean() < first[1]
    assert first[1] - first[0] == pytest.approx(2 * 1.96 / 200**0.5, rel=0.2)


def test_senses_that_point_apart_win_every_comparison_and_equal_vectors_none():
    labels = np.array([0, 0, 0, 1, 1])
    apart = np.eye(2)[labels] + 0.01 * np.random.default_rng(0).normal(size=(5, 2))
    assert _auc(apart, labels) == 1
    assert _auc(np.ones((5, 3)), labels) == 0.5


def test_random_weights_do_not_hold_that_senses_are_set_apart():
    classics = {word: [[1.0, 1.0], [0.9, 0.8]] for word in context.CLASSICS}
    near = {"mean": [0.5, 0.52], "interval": [[0.5, 0.5], [0.505, 0.535]], "words": [], "examples": []}
    far = {**near, "mean": [0.5, 0.61], "interval": [[0.5, 0.5], [0.58, 0.64]]}
    assert context.judge(given(classics=classics, separation=near)).outcome == FAILED
    assert context.judge(given(classics=classics, separation=far)).outcome == HELD


def test_words_that_go_the_wrong_way_are_named():
    classics = {word: [[1.0, 1.0], [0.9, 0.8]] for word in context.CLASSICS} | {"put": [[1.0, 1.0], [0.78, 0.82]]}
    _, table, text, groups, *_ = context.judge(given({"separation": "None."}, classics=classics)).blocks
    assert table.rows[0] == ("put", "1", "0.78", "0.82", "−0.04")
    assert "more similar for *Paris*, *bank* and *stick*, and not for *put*." in text.text
    assert [heading for heading, _ in groups.groups][:2] == ["**put**, present tense", "**put**, past tense"]
    assert context.MEANINGS.keys() == context.CLASSICS.keys()


def test_a_layer_that_is_higher_on_the_real_uses_is_told_and_does_not_decide():
    real = {"0": [0.5, 0.5, 0.5], "1": [0.62, 0.47, 0.75], "2": [0.74, 0.6, 0.9]}
    replaced = {"0": 0.5, "1": 0.79, "2": 0.73}
    rest = {"p": 0.001, "learnt_from": 9, "replaced_count": 9, "tenses": {"Pres": 4}, "by_verb": {}, "examples": []}
    verdict = tense.judge(given(tense={"best": "1", "real": real, "replaced": replaced, **rest}))
    assert verdict.outcome == FAILED
    assert "layer 2 (74 %) does better than layer 1, which decides" in verdict.blocks[2].text
    real["1"] = [0.8, 0.7, 0.9]
    verdict = tense.judge(given(tense={"best": "1", "real": real, "replaced": replaced, **rest}))
    assert verdict.outcome == HELD
    assert not any(isinstance(block, Paragraph) for block in verdict.blocks)


@pytest.mark.parametrize(("knows", "verdict"), [(True, HELD), (False, FAILED)])
def test_tense_is_found_where_it_was_planted(knows, verdict, tmp_path):
    from report_data import make_data

    from polyseme.report.measure.measurement import SampleSizes
    from polyseme.report.measure.model_under_test import EvaluationData

    seeds = count()

    def plant(sentence, place):
        mark = 5.0 * (1 if "yesterday" in sentence else -1) if knows else 0.0
        return np.concatenate([[mark], noise(next(seeds), dim=7)])

    found = tense.measure_tense(
        SimpleNamespace(encoder=Planted(plant)), EvaluationData(make_data(tmp_path)), SampleSizes()
    )  # pyright: ignore
    assert found["real"]["0"][0] == pytest.approx(0.5)
    assert tense.judge(given(tense=as_json(found))).outcome == verdict


def test_numbers_are_those_of_the_probe_command(tmp_path):
    from report_data import make_data

    from polyseme.analysis.layers.probe import ProbeSettings, probe
    from polyseme.report.measure.grammar import TEST, TRAIN
    from polyseme.report.measure.probing import embed_words, fit_and_predict, is_correct, one_layer, words_and_labels
    from polyseme.text.conll import LabelSpec, read_labelled

    data, model = make_data(tmp_path), Planted()
    train, test = (list(read_labelled(data / name, LabelSpec("upos"))) for name in (TRAIN, TEST))
    known, asked = (
        (embed_words(model, words_and_labels(part)[0]), words_and_labels(part)[1]) for part in (train, test)
    )  # pyright: ignore
    ours = is_correct(fit_and_predict(known, asked, one_layer(1)), asked[1]).mean()
    theirs = probe(model, train, test, ProbeSettings(layers=1, control=False)).layers[0].accuracy
    assert ours == pytest.approx(theirs)
    assert 0 < ours < 1


def by_layer(*shares, p=0.001):
    names = [str(number) for number in range(len(shares))]
    pairs = {f"{one} {other}": p for one in names for other in names if one < other}
    return {"accuracy": dict(zip(names, shares, strict=True)), "p": pairs, "usual": 0.5}


def grammar(upos, deprel):
    return {"limit": 1, "train_words": 1, "test_words": 1, "examples": [], "upos": upos, "deprel": deprel}


def sentiment(*shares, p=0.001):
    return {**by_layer(*shares, p=p), "train": 1, "test": 1}


def test_layers_hold_only_when_both_halves_of_the_claim_do():
    syntax = grammar(by_layer(0.8, 0.9, 0.85), by_layer(0.5, 0.7, 0.6))
    assert syntax_and_meaning.judge(given(grammar=syntax, sentiment=sentiment(0.6, 0.7, 0.8))).outcome == HELD
    assert syntax_and_meaning.judge(given(grammar=syntax, sentiment=sentiment(0.6, 0.8, 0.7))).outcome == FAILED
    assert syntax_and_meaning.judge(given(grammar=syntax, sentiment=sentiment(0.6, 0.7, 0.8, p=0.3))).outcome == FAILED
    assert syntax_and_meaning.judge(given(grammar=syntax)).outcome == UNTESTED


def test_layers_of_a_model_that_learns_nothing_from_context_do_not_hold():
    blind = grammar(by_layer(0.9, 0.85, 0.8), by_layer(0.5, 0.7, 0.6))
    verdict = syntax_and_meaning.judge(given(grammar=blind, sentiment=sentiment(0.6, 0.7, 0.8)))
    assert verdict.outcome == FAILED
    assert "beats the spelling" in verdict.reason


def test_twice_the_numbers_are_no_merit_of_two_directions():
    def shares(half):
        accuracy = {"0": 0.7, "1": 0.9, "forward": 0.8, "backward": 0.8, "both": 0.95, "half of both": half}
        return {
            "accuracy": accuracy,
            "p": dict.fromkeys(("0 1", "forward half of both", "backward half of both"), 0.01),
        }

    assert directions.judge(given(grammar=grammar(shares(0.9), shares(0.9)))).outcome == HELD
    assert directions.judge(given(grammar=grammar(shares(0.7), shares(0.7)))).outcome == FAILED


def test_documents_must_help_somewhere_and_hurt_nowhere():
    def found(upos, deprel, p=0.01, usual=0.7):
        sides = {
            name: {"alone": 0.8, "carried": share, "p": p, "usual": usual}
            for name, share in (("upos", upos), ("deprel", deprel))
        }
        return {"words": 1, "sentences": 1, "documents": 1, **sides}

    assert documents.judge(given(carried=found(0.9, 0.9))).outcome == HELD
    assert documents.judge(given(carried=found(0.9, 0.7))).outcome == FAILED
    assert documents.judge(given(carried=found(0.9, 0.9, p=0.2))).outcome == FAILED
    assert documents.judge(given(carried=found(0.9, 0.9, usual=0.95))).outcome == FAILED


def test_the_last_layer_must_lose_beyond_luck():
    def names(interval):
        f1 = {"0": 0.1, "last": 0.3, "second-to-last": 0.35, "embeddings": 0.2}
        return {"f1": f1, "difference": {"second-to-last last": interval}, "train": 1, "test": 1}

    assert transformer_layers.judge(given(names=names([0.01, 0.09]))).outcome == HELD
    assert transformer_layers.judge(given(names=names([-0.01, 0.09]))).outcome == FAILED
    assert transformer_layers.judge(given(names={"f1": {"0": 0.1, "1": 0.2, "2": 0.3}})).outcome == UNTESTED


def test_fitted_taggers_decide_on_layers_where_they_are_stored():
    rows = {"bert-last": [0.40, 0.41], "bert-embeddings": [0.2, 0.2], "bert-concat-last-four": [0.45, 0.46]}
    stored = results_of_model(results(wnut17=rows), "mine")
    assert transformer_layers.judge(given(tasks=stored)).outcome == HELD
    rows["bert-concat-last-four"] = [0.38, 0.46]
    assert transformer_layers.judge(given(tasks=results_of_model(results(wnut17=rows), "mine"))).outcome == FAILED


def test_all_models_stand_in_one_table():
    one = given(wic={"accuracy": {"0": 0.5, "1": 0.61}}, size={"bytes": 54_000_000})
    other = given(wic={"accuracy": {"0": 0.52}})
    table = transformer_layers.compare([one, other])[0]
    assert table.columns == ("model", "word in context", "MB")
    assert table.rows == (("model", "61.0", "54"), ("model", "52.0", "–"))


def results(fingerprint="mine", **scores):
    encoders = {"glove": []}
    return {
        f"{task}/{row}/{seed}": {
            "score": score,
            "encoders": encoders.get(row.partition("@")[0], [{"name": "elmo", "fingerprint": fingerprint}]),
            "mixes": {"input": [{"weights": [0.2, 0.5, 0.3], "gamma": 1.5}]} if row == "elmo" else {},
        }
        for task, rows in scores.items()
        for row, seeds in rows.items()
        for seed, score in enumerate(seeds)
    }


VALID = {
    "score": 0.4,
    "encoders": [{"fingerprint": "mine"}],
    "mixes": {"input": [{"weights": [0.5, 0.5], "gamma": 1}]},
}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([1, 2], "expected a JSON object of results by name, got [1, 2]"),
        ({"wnut17/elmo": VALID}, "wnut17/elmo: expected a key of the form task/row/seed"),
        ({"a/elmo/0": 0.4}, "a/elmo/0: expected an object with a score, got 0.4"),
        ({"a/elmo/0": VALID | {"score": 42}}, "expected a score from 0 to 1"),
        ({"a/elmo/0": VALID | {"score": "0.4"}}, "expected a score from 0 to 1"),
        ({"a/elmo/0": VALID | {"encoders": ["mine"]}}, "expected encoders as a list of objects with a fingerprint"),
        ({"a/elmo/0": VALID | {"mixes": {"input": [{"gamma": 1}]}}}, "expected mixes with an input list of objects"),
        ({"a/elmo/0": VALID | {"mixes": None}}, "expected mixes with an input list of objects"),
        ({"a/tuned/0": VALID | {"tuned_from": "mine"}}, "expected perplexities beside tuned_from"),
        (
            {"a/tuned/0": VALID | {"perplexities": {"held-out": [1]}}},
            "expected perplexities as [before, after] by text",
        ),
    ],
)
def test_a_wrong_file_of_task_results_is_refused_with_its_entry(tmp_path, entries, expected):
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(entries))
    with pytest.raises(FormatError) as caught:
        read_results(path)
    assert expected in str(caught.value)
    assert "docs/report.md" in str(caught.value)


def test_task_results_written_by_hand_need_a_score_and_a_fingerprint_only(tmp_path):
    path = tmp_path / "tasks.json"
    own = {"score": 0.4, "encoders": [{"fingerprint": "mine"}]}
    path.write_text(json.dumps({"a/glove/0": {"score": 0.3}, "a/elmo/0": own, "a/elmo/1": {"failed": "out of memory"}}))
    assert results_of_model(read_results(path), "mine")["scores"] == {"a": {"elmo": [40.0], "glove": [30.0]}}


def test_stored_task_results_of_the_benchmark_are_valid(request):
    assert read_results(request.config.rootpath / "benchmarks/results/tasks.json")


def test_results_of_another_model_are_not_taken():
    stored = results("another", wnut17={"glove": [0.3], "elmo": [0.4]})
    with pytest.raises(ConfigError, match="no entry has its fingerprint"):
        results_of_model(stored, "mine")


def test_fits_are_the_encoders_and_not_those_of_the_word_vectors_beside_it():
    stored = results(wnut17={"elmo": [0.4]})
    for each in stored.values():
        each["encoders"].append({"name": "glove", "fingerprint": "words"})
    with pytest.raises(ConfigError, match="no entry has its fingerprint"):
        results_of_model(stored, "words")


def test_the_learnt_mix_must_beat_the_top_layer():
    stored = results(wnut17={"elmo": [0.40, 0.41, 0.42], "layer-2": [0.35, 0.36, 0.37]}, ewt={"glove": [0.9]})
    verdict = layer_mixing.judge(given(tasks=as_json(results_of_model(stored, "mine"))))
    assert verdict.outcome == HELD
    assert "+5.0 points" in verdict.reason
    noisy = results(wnut17={"elmo": [0.30, 0.41, 0.52], "layer-2": [0.35, 0.36, 0.37]})
    assert layer_mixing.judge(given(tasks=as_json(results_of_model(noisy, "mine")))).outcome == FAILED
    assert layer_mixing.judge(given({"tasks": "Nothing."})).outcome == UNTESTED


def test_less_data_is_judged_by_tasks_or_else_by_a_probe():
    stored = results(wnut17={"glove": [0.3], "elmo": [0.4], "elmo@30%": [0.31]})
    assert labelled_data.judge(given(tasks=as_json(results_of_model(stored, "mine")))).outcome == HELD
    good = {"sentences": [1] * 5, "view": "joined", "spelling": [0.8] * 5, "context": [0.85] * 5}
    assert labelled_data.judge(given(grammar={"curve": good, "upos": {"usual": 0.7}})).outcome == HELD
    assert labelled_data.judge(given(grammar={"curve": good, "upos": {"usual": 0.9}})).outcome == FAILED
    probe = {
        "sentences": [1, 2, 3, 4, 5],
        "view": "joined",
        "spelling": [0.5] * 4 + [0.8],
        "context": [0.5] * 3 + [0.7] * 2,
    }
    assert labelled_data.judge(given(grammar={"curve": probe, "upos": {"usual": 0.6}})).outcome == FAILED


def test_the_gain_is_averaged_over_four_tasks_or_more():
    tasks = {name: {"glove": [0.80], "elmo": [0.83]} for name in ("wnut17", "conll2000", "ewt", "sst5")}
    assert task_gains.judge(given(tasks=results_of_model(results(**tasks), "mine"))).outcome == HELD
    tasks["sick"] = {"glove": [0.80], "elmo": [0.78]}
    assert task_gains.judge(given(tasks=results_of_model(results(**tasks), "mine"))).outcome == FAILED
    few = {name: tasks[name] for name in ("wnut17", "ewt")}
    assert task_gains.judge(given(tasks=results_of_model(results(**few), "mine"))).outcome == UNTESTED


def test_fine_tuning_is_compared_with_the_same_model_frozen():
    rows = {"fine-tuned": [0.5, 0.51], "bert-weighted-sum-all": [0.4, 0.41]}
    assert fine_tuning.judge(given(tasks=results_of_model(results(wnut17=rows), "mine"))).outcome == HELD
    assert fine_tuning.judge(given(tasks=results_of_model(results(wnut17={"elmo": [0.4]}), "mine"))).outcome == UNTESTED


def test_perplexities_before_and_after_tuning_are_read_from_the_model(tmp_path):
    def evaluation(step, text, both):
        return {"step": step, "text": text, "fresh": {"both": both}}

    rows = [evaluation(0, "held-out", 200), evaluation(0, "old.txt", 90), evaluation(5, "held-out", 150)]
    rows += [evaluation(9, "held-out", 120), evaluation(9, "old.txt", 99)]
    (tmp_path / "training.json").write_text(json.dumps({"evaluations": rows}))
    found = fine_tuning.read_tuning(tmp_path)
    assert found == {"held-out": [200, 120], "old.txt": [90, 99]}
    verdict = fine_tuning.judge(given(tuned=found))
    assert verdict.outcome == HELD
    assert verdict.blocks[1].rows[1] == ("old.txt", "90.0", "99.0", "+10 %")
    assert fine_tuning.judge(given(tuned={"held-out": [200, 195]})).outcome == FAILED
    (tmp_path / "training.json").write_text(json.dumps({"evaluations": rows[2:3]}))
    with pytest.raises(ConfigError, match="not tuned from another"):
        fine_tuning.read_tuning(tmp_path)
    (tmp_path / "training.json").write_text("{")
    with pytest.raises(ConfigError, match="without a record of its training"):
        fine_tuning.read_tuning(tmp_path)


def test_a_model_that_was_tuned_from_this_one_tells_what_the_tasks_gained():
    stored = results(sst5={"elmo": [0.45, 0.46]}, trec6={"elmo": [0.96, 0.96]})
    tuned = results("other", sst5={"tuned": [0.47, 0.48]}, trec6={"tuned": [0.95, 0.95]})
    for each in tuned.values():
        each |= {"tuned_from": "mine", "perplexities": {"held-out": [200, 120], "old.txt": [90, 99]}}
    verdict = fine_tuning.judge(given(tasks=as_json(results_of_model(stored | tuned, "mine"))))
    assert verdict.outcome == HELD
    assert "from 200.0 to 120.0" in verdict.reason
    assert verdict.blocks[-1].rows[0] == ("sentiment (SST-5)", "45.5 ± 0.7", "47.5 ± 0.7", "+2.0")
    with pytest.raises(ConfigError, match="no entry has its fingerprint"):
        results_of_model(tuned, "yours")


def test_one_seed_says_nothing_about_luck():
    assert difference([3.0], [1.0]) == (2.0, float("inf"))


def test_what_is_stored_comes_back_as_it_was_given(tmp_path):
    store = ResultStore(tmp_path / "parts")
    found = store.put("part", {"seed": 0}, {"a": np.float32(1 / 3), "b": [float("nan"), np.arange(2)]})
    assert found == store.get("part", {"seed": 0}) == {"a": 0.3333333, "b": [None, [0, 1]]}
    assert store.get("part", {"seed": 1}) is None


@pytest.mark.parametrize(
    "alter",
    [
        lambda text: '{"a": 1}',
        lambda text: '["found", "sha256"]',
        lambda text: "[" * 100_000,
        lambda text: text.replace("0.25", "0.26"),
        lambda text: text.replace('"found": {', '"found": {"more": 1,'),
        lambda text: text[: len(text) // 2],
    ],
)
def test_what_was_altered_in_the_store_is_not_taken(tmp_path, alter):
    store = ResultStore(tmp_path)
    store.put("part", 0, {"share": 0.25})
    path = next(tmp_path.glob("part-*.json"))
    whole = path.read_text("utf-8")
    assert alter(whole) != whole
    path.write_text(alter(whole), "utf-8")
    assert store.get("part", 0) is None


def test_no_file_of_the_store_can_stand_in_for_another(tmp_path):
    store = ResultStore(tmp_path)
    store.put("part", 0, {"share": 0.25})
    first = next(tmp_path.glob("part-*.json")).read_bytes()
    store.put("part", 1, {"share": 0.75})
    for path in tmp_path.glob("part-*.json"):
        path.write_bytes(first)
    assert store.get("part", 0) == {"share": 0.25}
    assert store.get("part", 1) is None


def test_letters_are_common_where_most_words_have_them_in_the_same_place():
    others = ["park›", "back›", "sank›", "tack›", "masks"]
    assert common_letters("bank›", others) == "a·k›"
    assert common_letters("‹bank", ["x"] * 5) == ""


@pytest.mark.parametrize("same", [True, False])
def test_the_opening_tells_which_use_has_another_meaning(same):
    found = {"uses": 2, "nearest": [[[["the", "bank", "."], 1, 0.694, same]]] * 2}
    quotes = [block for block in write_opening([given(opening=found)]) if isinstance(block, ExampleSentences)]
    assert quotes[0].lines == ((("the", "bank", "."), 1, "0.69" if same else "0.69, different meaning"),)


def test_the_list_says_in_short_why_a_claim_was_not_tested():
    verdict = Verdict(UNTESTED, "Fitted tasks are needed (--tasks FILE). More is below.")
    page = write_page(Page(("m",), (), ((),), (ClaimSection(1, "Title", "Explanation", "", (verdict,)),), ""))
    assert "Not tested: fitted tasks are needed (--tasks FILE).</span>" in page
    assert "Of 1 claim about the model <em>m</em>, 1 not tested here." in page


def test_text_is_set_as_print_is_and_code_is_left_alone():
    nbsp, curly = "\u00a0", "\u2019"
    assert inline("a word's 95 % in layer 2") == f"a word{curly}s 95{nbsp}% in layer{nbsp}2"
    assert inline("the words' vectors, 'x'") == f"the words{curly} vectors, 'x'"
    assert inline("`it's 5 % of layer 2`") == "<code>it's 5 % of layer 2</code>"


def test_the_rule_stands_before_the_verdict():
    verdict = Verdict(HELD, "Because.", (Paragraph("Figures."), PassRule("it rains.")))
    page = write_page(Page(("m",), (), ((),), (ClaimSection(1, "Title", "Explanation", "", (verdict,)),), ""))
    section = page[page.index('id="claim-1"') :]
    assert section.index("It rains.") < section.index("Because.") < section.index("Figures.")


def test_text_of_data_cannot_become_markup():
    assert inline("<b> & `x*y*`") == "&lt;b&gt; &amp; <code>x*y*</code>"
    assert "<script>" not in bar_chart([Bar("<script>", 1)], 2)
    assert 'points="' in line_chart({"a": [1.0, None]}, ["0", "1"], "layer", (0, 1))
