"""The report as a whole: from a command to a page."""

import json
import re
import shutil
from functools import partial

import pytest
from language_models import make_language_model, save_language_model
from report_data import make_data

from polyseme.analysis.layers.logistic_regression import LinearFitSettings, LinearProblem
from polyseme.errors import PolysemeError
from polyseme.loading import load
from polyseme.report import run
from polyseme.report.claim import Findings
from polyseme.report.claims import claim_01_context as context
from polyseme.report.claims import listing
from polyseme.report.claims.claim_03_unseen_words import UNSEEN
from polyseme.report.claims.claim_09_documents import DOCUMENTS
from polyseme.report.claims.claim_10_transformer_layers import SIMILARITY, WIC
from polyseme.report.measure import probing
from polyseme.report.measure.grammar import GRAMMAR
from polyseme.report.measure.measurement import SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.names import NAMES
from polyseme.report.measure.senses import SENSES
from polyseme.report.measure.sentiment import SENTIMENT
from polyseme.report.page.content import FAILED, HELD, INCONCLUSIVE, UNTESTED
from polyseme.report.run import Report, ReportSettings

VERDICTS = {HELD, FAILED, INCONCLUSIVE, UNTESTED}
SMALL = SampleSizes(
    tagged=30, verbs=40, named=40, documents=500, gaps=30, misspelt=20, homonyms=12, fitted=20, fit_steps=5, tuned=20,
    tuning_epochs=1,
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def short_fits():
    """Probes of made-up sentences go on for ever, and nobody asks how good they are here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probing, "LinearProblem", partial(LinearProblem, settings=LinearFitSettings(iterations=10)))
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def tiny(request):
    return request.config.rootpath / "tests/fixtures/tiny"


def read(folder):
    return (folder / "report.html").read_text("utf-8"), json.loads((folder / "report.json").read_text("utf-8"))


def verdicts(result, model=0):
    return {claim["number"]: claim["verdict"] for claim in result["models"][model]["claims"]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory, data, tiny):
    """Everything about the tiny model."""
    folder = tmp_path_factory.mktemp("whole")
    make(tiny, data, folder)
    return folder


def make(model, data, folder):
    report = Report(
        [ModelUnderTest(load(model), str(model))], ReportSettings(folder, str(data) if data else None, sizes=SMALL)
    )
    for _ in report.steps():
        pass
    report.write()


def test_a_random_model_is_reported_whole(whole):
    page, result = read(whole)
    assert set(verdicts(result)) == set(range(1, 12))
    assert set(verdicts(result).values()) <= VERDICTS
    assert all(f'id="claim-{number}"' in page for number in range(1, 12))
    assert {"grammar", "names", "senses", "tense", "carried", "tour"} <= set(result["models"][0]["found"])


def test_the_same_page_comes_again_to_the_last_byte(whole, tmp_path, data, tiny):
    make(tiny, data, tmp_path)
    for name in ("report.html", "report.json"):
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes()


def test_the_page_stands_by_itself(whole):
    page, _ = read(whole)
    assert not re.search(r"(src|href)=[\"'](?!#)|@import|url\(|<script|<link", page)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert 'name="viewport"' in page


@pytest.fixture(scope="module")
def bundled(tmp_path_factory, tiny):
    """Everything about the tiny model, from bundled data alone."""
    folder = tmp_path_factory.mktemp("bundled")
    make(tiny, None, folder)
    return folder


def test_without_data_every_claim_about_this_kind_of_model_is_decided(bundled):
    page, result = read(bundled)
    found = verdicts(result)
    assert [number for number, verdict in found.items() if verdict == UNTESTED] == [10]  # which is about transformers
    assert "Name a transformer" in page
    assert "--data DIR uses more" in page
    assert not re.search(r"%\d:\d\d:", page)  # sense keys
    assert page.count("for 95 of 100 samples") == 1


def test_the_page_fits_a_telephone(bundled):
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport={"width": 360, "height": 740})
        page.goto((bundled / "report.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        wide = "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth + 1)"
        assert page.evaluate(f"{wide}.map(box => box.innerText)") == []
        browser.close()


def test_quiet_prints_the_page_alone(call, tmp_path, tiny):
    outcome = call("report", tiny, "--only", "tour", "--quiet", "-o", tmp_path)
    assert outcome.err == ""
    assert outcome.out == f"{tmp_path / 'report.html'}\n"


def test_progress_says_what_is_being_measured(tmp_path, tiny):
    report = Report([ModelUnderTest(load(tiny), str(tiny))], ReportSettings(tmp_path, only=("tour",)))
    assert report.upcoming == f"[1/2] {tiny}: measuring opening"
    steps = report.steps()
    next(steps)
    assert report.upcoming == f"[2/2] {tiny}: measuring tour"
    next(steps)
    assert report.upcoming == "writing the page"


def test_finished_parts_are_not_measured_again_and_a_damaged_one_is(call, tmp_path, data, tiny):
    arguments = ("report", tiny, "--data", data, "--only", "1", "-o", tmp_path)
    assert "from an earlier run" not in call(*arguments).err
    before = (tmp_path / "report.html").read_bytes()
    again = call(*arguments).err
    assert again.count("from an earlier run") == len(again.splitlines())
    next((tmp_path / "parts").glob("separation-*.json")).write_text('{"mean": [0.')
    assert call(*arguments).err.count("from an earlier run") == len(again.splitlines()) - 1
    assert (tmp_path / "report.html").read_bytes() == before
    next((tmp_path / "parts").glob("geometry-*.json")).write_text('{"a": 1}')
    assert "geometry: from an earlier run" not in call(*arguments).err
    assert (tmp_path / "report.html").read_bytes() == before
    assert "geometry: from an earlier run" in call(*arguments).err


def test_an_interruption_costs_one_part(call, tmp_path, tiny, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    arguments = ("report", tiny, "--only", "1", "-o", tmp_path)
    with monkeypatch.context() as patch:
        broken = context.GEOMETRY.__class__("geometry", interrupt, sizes=("seed",))
        claim = context.CLAIM.__class__(1, "x", "x", (context.CLASSIC, broken), context.judge)
        patch.setattr(listing, "CLAIMS", (claim,))
        stopped = call(*arguments)
        assert stopped.status == 130
        assert "the same command continues from here" in stopped.err
    assert not (tmp_path / "report.html").exists()
    assert "classics: from an earlier run" in call(*arguments).err


def test_another_model_or_other_data_are_measured_anew(call, tmp_path, data, tiny, fixtures):
    def kept(*arguments):
        return call("report", *arguments, "--only", "2", "-o", tmp_path / "out").err.count("from an earlier run")

    assert kept(tiny, "--data", data) == 0
    assert kept(fixtures / "bilm-tanh", "--data", data) == 0
    other = make_data(tmp_path / "data")
    assert kept(tiny, "--data", other) == 3  # the same bytes in another place
    path = other / "pos-ud-ewt/en_ewt-ud-dev.conllu.xz"
    path.write_bytes((other / "pos-ud-ewt/en_ewt-ud-train.conllu.xz").read_bytes())
    assert kept(tiny, "--data", other) == 2


def test_results_of_an_older_version_are_measured_again(call, tmp_path, tiny, monkeypatch):
    arguments = ("report", tiny, "--only", "1", "-o", tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(run, "VERSION", run.VERSION - 1)
        call(*arguments)
    assert "from an earlier run" not in call(*arguments).err


def test_models_stand_side_by_side(call, tmp_path, data, tiny, fixtures):
    outcome = call("report", tiny, fixtures / "bilm-tanh", "--only", "1", "-o", tmp_path)
    assert outcome.status == 0, outcome.err
    page, result = read(tmp_path)
    assert [each["model"] for each in result["models"]] == [str(tiny), str(fixtures / "bilm-tanh")]
    assert page.count('class="model"') == 4  # tour and claim, each for both
    assert all(re.search(rf">{name}: (held|did not hold|inconclusive)<", page) for name in ("tiny", "bilm-tanh"))


def test_static_vectors_are_told_to_be_static(call, tmp_path):
    lines = [
        f"{word} {n} 1 {n % 3}"
        for n, word in enumerate(["put", "Paris", "bank", "stick", "the", "river", "money"], start=1)
    ]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n")
    outcome = call("report", tmp_path / "vectors.txt", "--only", "1", "-o", tmp_path / "out")
    assert outcome.status == 0, outcome.err
    page, result = read(tmp_path / "out")
    assert "Of 1 claim about the model" in page
    assert verdicts(result)[1] == FAILED
    assert "the same vector in every sentence" in page


def test_a_model_with_a_head_is_asked_as_a_language_model(call, tmp_path, data):
    model = save_language_model(make_language_model(), tmp_path / "model")
    outcome = call("report", model, "--data", data, "--only", "9", "-o", tmp_path / "out")
    assert outcome.status == 0, outcome.err
    _, result = read(tmp_path / "out")
    found = result["models"][0]["found"]["perplexity"]
    assert found["documents"] == 4
    assert found["fresh"]["both"] > 1
    assert found["fresh"]["both"] != found["carried"]["both"]


def test_a_published_model_is_reported_without_flattery(call, tmp_path, shared_fixtures):
    outcome = call("report", shared_fixtures / "bilm-tf", "--only", "1", "-o", tmp_path)
    assert outcome.status == 0, outcome.err
    _, result = read(tmp_path)
    assert verdicts(result)[1] in (FAILED, INCONCLUSIVE)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--only", "12"), "there is no claim '12'; choose from 1 to 11, or 'tour'"),
        (("--data", "nowhere"), "nowhere does not exist; --data takes a folder of labelled data sets"),
        (("--data", "README.md"), "README.md is not a folder; --data takes a folder"),
        (
            ("--data", "docs"),
            "docs contains none of the labelled data sets; expected folders named lm-wikitext103",
        ),
        (("--data", ""), ". contains none of the labelled data sets"),
        (("--tasks", "README.md"), "README.md: expected JSON, and it is not"),
        (("--tasks", "docs"), "docs is a folder; --tasks takes a JSON file of task results"),
        (("--tasks", "tests/fixtures/tiny/model.safetensors"), "expected JSON, and it is not"),
        (("--tasks", "nowhere.json"), "nowhere.json"),
        (("-o", "README.md"), "README.md is a file; give a folder"),
        (("",), "MODEL is empty; give the name of a model or its path"),
    ],
)
def test_wrong_input_is_one_sentence(call, tiny, tmp_path, arguments, fault, request, monkeypatch):
    monkeypatch.chdir(request.config.rootpath)
    output = () if "-o" in arguments else ("-o", tmp_path)
    outcome = call("report", tiny, *arguments, *output)
    assert outcome.status == 2
    assert fault in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_wrong_input_is_refused_before_a_model_is_opened(call, tmp_path):
    outcome = call("report", tmp_path / "no-model", "--data", tmp_path / "nowhere", "-o", tmp_path / "out")
    assert "nowhere does not exist" in outcome.err
    assert not (tmp_path / "out").exists()


def test_a_model_that_is_given_twice_is_taken_once(call, tmp_path, tiny, fixtures):
    models = (tiny, fixtures / "bilm-tanh", f"{tiny}/../tiny")
    call("report", *models, "--only", "tour", "-o", tmp_path)
    assert [each["model"] for each in read(tmp_path)[1]["models"]] == list(map(str, models[:2]))


def test_a_damaged_set_spoils_its_own_part_only(call, tmp_path, tiny):
    folder = make_data(tmp_path / "data")
    (folder / "wsd/semcor.jsonl.xz").write_bytes(b"no archive")
    outcome = call("report", tiny, "--data", folder, "--only", "1", "-o", tmp_path / "out")
    assert outcome.status == 0, outcome.err
    _, result = read(tmp_path / "out")
    assert "semcor.jsonl.xz" in result["models"][0]["missing"]["separation"]
    assert "geometry" in result["models"][0]["found"]


@pytest.mark.parametrize(
    ("part", "file"),
    [
        (GRAMMAR, "pos-ud-ewt/en_ewt-ud-test.conllu.xz"),
        (DOCUMENTS, "pos-ud-ewt/en_ewt-ud-train.conllu.xz"),
        (SENTIMENT, "sentiment-sst/stsa.binary.train"),
        (NAMES, "ner-wnut17/wnut17train.conll"),
        (SENSES, "wsd/wordnet-3.0-index.sense.xz"),
        (WIC, "wic/dev.gold.txt"),
        (SIMILARITY, "similarity/EN-SIMLEX-999.txt"),
        (UNSEEN, "lm-wikitext103/wiki.valid.tokens"),
    ],
)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00garbage \x80\n"])
def test_data_that_is_something_else_is_told_and_never_a_crash(tiny, tmp_path, part, file, content):
    folder = make_data(tmp_path)
    (folder / file).write_bytes(content)
    with pytest.raises(PolysemeError):
        part.measure(ModelUnderTest(load(tiny), str(tiny)), EvaluationData(folder), SampleSizes())


def test_commands_on_the_page_can_be_pasted(tmp_path):
    findings = Findings("m", "my models/a", "da ta", False)
    assert findings.rerun(4).line == "polyseme report 'my models/a' --data 'da ta' --only 4 -o claim-4"
    assert findings.rerun("tour").line.endswith("--only tour -o tour")
    assert findings.data_path("wsd/x") == "'da ta/wsd/x'"
