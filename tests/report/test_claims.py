"""What the report concludes from results that are known."""

import json
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from planted_senses import Planted, noise
from report_data import make_data, make_task_results

from polyseme.errors import ConfigError
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
from polyseme.report.measure.fits import word_tasks
from polyseme.report.measure.result_store import as_json
from polyseme.report.measure.task_results import results_of_model
from polyseme.report.page.content import FAILED, HELD, INCONCLUSIVE, UNTESTED, Paragraph


def given(missing=(), **found):
    return Findings("model", "model", "data", False, found, dict(missing))


CLASSICS = {word: [[1.0, 1.0], [0.9, 0.8]] for word in context.CLASSICS}


def meanings(low, high):
    word = {"word": "bank", "meanings": {"of a river": 6, "for money": 6}, "area": [0.5, low]}
    example = {"word": "bank", "meanings": {"of a river": [[["the", "bank"], 1]], "for money": [[["a", "bank"], 1]]}}
    found = {"mean": [0.5, (low + high) / 2], "interval": [[0.5, 0.5], [low, high]], "words": [word], "sentences": 12}
    return {**found, "accuracy": {"0": 0.5, "1": 0.8}, "p": {"0 1": 0.01}, "examples": [example, example]}


@pytest.mark.parametrize(
    ("interval", "outcome"),
    [((0.505, 0.535), FAILED), ((0.53, 0.59), INCONCLUSIVE), ((0.58, 0.64), HELD)],
)
def test_meanings_must_be_separated_better_than_random_weights_do(interval, outcome):
    assert context.judge(given(classics=CLASSICS, meanings=meanings(*interval))).outcome == outcome


def test_semcor_counts_too_if_it_is_given():
    semcor = {"mean": [0.5, 0.52], "interval": [[0.5, 0.5], [0.505, 0.535]], "words": [], "examples": []}
    assert context.judge(given(classics=CLASSICS, meanings=meanings(0.6, 0.7), separation=semcor)).outcome == FAILED
    far = {**semcor, "interval": [[0.5, 0.5], [0.58, 0.64]]}
    assert context.judge(given(classics=CLASSICS, meanings=meanings(0.6, 0.7), separation=far)).outcome == HELD


def test_words_that_contradict_the_claim_are_named():
    classics = CLASSICS | {"put": [[1.0, 1.0], [0.78, 0.82]]}
    *_, table, text, groups, _ = context.judge(given(classics=classics, meanings=meanings(0.6, 0.7))).blocks
    assert table.rows[0] == ("put", "1", "0.78", "0.82", "−0.04")
    assert "more similar for *Paris*, *bank* and *stick*, and not for *put*." in text.text
    assert [heading for heading, _ in groups.groups][:2] == ["**put**, present tense", "**put**, past tense"]
    assert context.MEANINGS.keys() == context.CLASSICS.keys()


def test_a_layer_that_is_better_on_the_real_uses_is_mentioned_and_does_not_decide():
    real = {"0": [0.5, 0.5, 0.5], "1": [0.62, 0.47, 0.75], "2": [0.74, 0.6, 0.9]}
    replaced = {"0": 0.5, "1": 0.79, "2": 0.73}
    rest = {"p": 0.001, "learnt_from": 9, "replaced_count": 9, "tenses": {"Pres": 4}, "by_verb": {}, "examples": []}
    verdict = tense.judge(given(tense={"best": "1", "real": real, "replaced": replaced, **rest}))
    assert verdict.outcome == INCONCLUSIVE
    assert "layer 2 (74 %) does better than layer 1, which decides" in verdict.blocks[2].text
    real["1"] = [0.8, 0.7, 0.9]
    verdict = tense.judge(given(tense={"best": "1", "real": real, "replaced": replaced, **rest}))
    assert verdict.outcome == HELD
    assert not any(isinstance(block, Paragraph) for block in verdict.blocks)


@pytest.mark.parametrize(("knows", "verdict"), [(True, HELD), (False, INCONCLUSIVE)])
def test_tense_is_found_where_it_was_planted(knows, verdict, tmp_path):
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
    assert (
        syntax_and_meaning.judge(given(grammar=syntax, sentiment=sentiment(0.6, 0.7, 0.8, p=0.3))).outcome
        == INCONCLUSIVE
    )
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
    assert documents.judge(given(carried=found(0.9, 0.9, p=0.2))).outcome == INCONCLUSIVE
    assert documents.judge(given(carried=found(0.9, 0.9, usual=0.95))).outcome == FAILED


def test_the_last_layer_must_be_significantly_worse():
    def names(interval):
        f1 = {"0": 0.1, "last": 0.3, "second-to-last": 0.35, "embeddings": 0.2}
        return {"f1": f1, "difference": {"second-to-last last": interval}, "train": 1, "test": 1, "set": "x"}

    assert transformer_layers.judge(given(names=names([0.01, 0.09]))).outcome == HELD
    assert transformer_layers.judge(given(names=names([-0.01, 0.09]))).outcome == INCONCLUSIVE
    assert transformer_layers.judge(given(names=names([-0.05, -0.01]))).outcome == FAILED
    assert transformer_layers.judge(given(names={"f1": {"0": 0.1, "1": 0.2, "2": 0.3}})).outcome == UNTESTED


def test_fitted_taggers_decide_on_layers_where_they_are_stored():
    rows = {"bert-last": [0.40, 0.41], "bert-embeddings": [0.2, 0.2], "bert-concat-last-four": [0.45, 0.46]}
    stored = results_of_model(make_task_results(wnut17=rows), "mine")
    assert transformer_layers.judge(given(tasks=stored)).outcome == HELD
    rows["bert-concat-last-four"] = [0.38, 0.46]
    assert (
        transformer_layers.judge(given(tasks=results_of_model(make_task_results(wnut17=rows), "mine"))).outcome
        == INCONCLUSIVE
    )


def test_all_models_stand_in_one_table():
    one = given(wic={"accuracy": {"0": 0.5, "1": 0.61}}, size={"bytes": 54_000_000})
    other = given(wic={"accuracy": {"0": 0.52}})
    table = transformer_layers.compare([one, other])[0]
    assert table.columns == ("model", "word in context", "MB")
    assert table.rows == (("model", "61.0", "54"), ("model", "52.0", "–"))


def test_the_learned_mix_must_beat_the_top_layer():
    stored = make_task_results(wnut17={"elmo": [0.40, 0.41, 0.42], "layer-2": [0.35, 0.36, 0.37]}, ewt={"glove": [0.9]})
    verdict = layer_mixing.judge(given(tasks=as_json(results_of_model(stored, "mine"))))
    assert verdict.outcome == HELD
    assert "+5.0 points" in verdict.reason
    noisy = make_task_results(wnut17={"elmo": [0.30, 0.41, 0.52], "layer-2": [0.35, 0.36, 0.37]})
    assert layer_mixing.judge(given(tasks=as_json(results_of_model(noisy, "mine")))).outcome == INCONCLUSIVE
    assert layer_mixing.judge(given({"tasks": "Nothing."})).outcome == UNTESTED


def test_less_data_is_judged_by_stored_tasks():
    stored = make_task_results(wnut17={"glove": [0.3], "elmo": [0.4], "elmo@30%": [0.31]})
    assert labelled_data.judge(given(tasks=as_json(results_of_model(stored, "mine")))).outcome == HELD


def fitted(value, error=0.1):
    """Results of the four tasks that are fitted on the spot, the same difference for every pair of rows."""
    difference = {"value": value, "interval": [value - 2 * error, value + 2 * error], "error": error}
    pairs = {f"{one} {other}": difference for one, other in word_tasks.PAIRS}
    scores = dict.fromkeys((word_tasks.SPELLING, word_tasks.TOP, word_tasks.MIX, word_tasks.FEW), 80.0)
    found = {"train": 9, "few": 3, "test": 9, "score": scores, "weights": [0.2, 0.5, 0.3], "difference": pairs}
    return {name: {"title": task.title, **found} for name, task in word_tasks.TASKS.items()}


@pytest.mark.parametrize("claim", [layer_mixing, labelled_data])
@pytest.mark.parametrize(
    ("found", "outcome"), [(fitted(1), HELD), (fitted(-1), FAILED), (fitted(0), INCONCLUSIVE), ({}, UNTESTED)]
)
def test_tasks_that_are_fitted_on_the_spot_decide(claim, found, outcome):
    assert claim.judge(given({"tasks": "None."}, **found)).outcome == outcome


@pytest.mark.parametrize(
    ("found", "outcome"),
    [(fitted(3), HELD), (fitted(2, 0.5), INCONCLUSIVE), (fitted(1), FAILED), (fitted(-3), FAILED)],
)
def test_the_gain_of_fitted_tasks_must_surely_be_two_points(found, outcome):
    assert task_gains.judge(given(**found)).outcome == outcome


def test_a_task_that_surely_loses_refutes_the_gain():
    found = fitted(5)
    found["task-names"] = fitted(-2)["task-names"]
    assert task_gains.judge(given(**found)).outcome == FAILED


@pytest.mark.parametrize(("value", "outcome"), [(1, HELD), (0, INCONCLUSIVE), (-1, FAILED)])
def test_fine_tuning_on_the_spot_is_compared_with_the_frozen_model(value, outcome):
    difference = {"value": value, "interval": [value - 0.5, value + 0.5], "error": 0.25}
    found = {"title": "roles", "train": 9, "test": 9, "epochs": 2, "score": {"frozen": 80, "tuned": 80 + value}}
    assert fine_tuning.judge(given(**{"fine-tuning": {**found, "difference": difference}})).outcome == outcome


def test_the_gain_is_averaged_over_four_tasks_or_more():
    tasks = {name: {"glove": [0.80], "elmo": [0.83]} for name in ("wnut17", "conll2000", "ewt", "sst5")}
    assert task_gains.judge(given(tasks=results_of_model(make_task_results(**tasks), "mine"))).outcome == HELD
    tasks["sick"] = {"glove": [0.80], "elmo": [0.78]}
    assert task_gains.judge(given(tasks=results_of_model(make_task_results(**tasks), "mine"))).outcome == FAILED
    few = {name: tasks[name] for name in ("wnut17", "ewt")}
    assert task_gains.judge(given(tasks=results_of_model(make_task_results(**few), "mine"))).outcome == UNTESTED


def test_fine_tuning_is_compared_with_the_same_model_frozen():
    rows = {"fine-tuned": [0.5, 0.51], "bert-weighted-sum-all": [0.4, 0.41]}
    assert fine_tuning.judge(given(tasks=results_of_model(make_task_results(wnut17=rows), "mine"))).outcome == HELD
    assert (
        fine_tuning.judge(given(tasks=results_of_model(make_task_results(wnut17={"elmo": [0.4]}), "mine"))).outcome
        == UNTESTED
    )


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


def test_a_model_that_was_tuned_from_this_one_shows_what_the_tasks_gained():
    stored = make_task_results(sst5={"elmo": [0.45, 0.46]}, trec6={"elmo": [0.96, 0.96]})
    tuned = make_task_results("other", sst5={"tuned": [0.47, 0.48]}, trec6={"tuned": [0.95, 0.95]})
    for each in tuned.values():
        each |= {"tuned_from": "mine", "perplexities": {"held-out": [200, 120], "old.txt": [90, 99]}}
    verdict = fine_tuning.judge(given(tasks=as_json(results_of_model(stored | tuned, "mine"))))
    assert verdict.outcome == HELD
    assert "from 200.0 to 120.0" in verdict.reason
    assert verdict.blocks[-1].rows[0] == ("sentiment (SST-5)", "45.5 ± 0.7", "47.5 ± 0.7", "+2.0")
    with pytest.raises(ConfigError, match="no entry has its fingerprint"):
        results_of_model(tuned, "yours")
