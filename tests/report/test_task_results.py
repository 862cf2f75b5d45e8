"""The file of task results that ``--tasks`` reads."""

import json

import pytest
from report_data import make_task_results

from polyseme.errors import ConfigError, FormatError
from polyseme.report.measure.task_results import difference, read_results, results_of_model

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
    stored = make_task_results("another", wnut17={"glove": [0.3], "elmo": [0.4]})
    with pytest.raises(ConfigError, match="no entry has its fingerprint"):
        results_of_model(stored, "mine")


def test_fits_are_the_encoders_and_not_those_of_the_word_vectors_beside_it():
    stored = make_task_results(wnut17={"elmo": [0.4]})
    for each in stored.values():
        each["encoders"].append({"name": "glove", "fingerprint": "words"})
    with pytest.raises(ConfigError, match="no entry has its fingerprint"):
        results_of_model(stored, "words")


def test_one_seed_gives_no_standard_error():
    assert difference([3.0], [1.0]) == (2.0, float("inf"))
