"""Messages about common mistakes: each says what is wrong and what to do, once."""

import traceback

import pytest
from labelled_data import opinions

import polyseme
from polyseme.backends.transformer import files
from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.tasks.fitting.loop import FitSettings

WORDS_FIRST = r"split it into words first: \[sentence.words for sentence in polyseme.tokenize\(text\)\]"


class _NoHub:
    constants = type("Constants", (), {"ENDPOINT": "https://example.invalid"})

    @staticmethod
    def try_to_load_from_cache(*_):
        return None

    @staticmethod
    def get_session():
        raise OSError("no network")


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setattr(files, "require", lambda *_: _NoHub)


def test_a_misspelt_model_is_met_with_the_right_name(offline):
    with pytest.raises(FormatError, match=r"englsh does not exist here.* Did you mean 'english'"):
        polyseme.load("englsh")


def test_a_model_that_cannot_be_fetched_is_one_message_without_a_chain(offline):
    with pytest.raises(FormatError, match="hub, where a model may have that name, cannot be reached") as caught:
        polyseme.load("bert-base-cased")
    assert "".join(traceback.format_exception(caught.value)).count("Traceback") == 1


@pytest.mark.parametrize("load", [polyseme.load, polyseme.LanguageModel.load])
def test_a_device_that_does_not_exist_is_met_with_those_that_may(load):
    with pytest.raises(ConfigError, match=r"there is no device 'gpu'; use cpu, cuda .* or mps") as caught:
        load(device="gpu")
    assert "xpu" not in str(caught.value)


def test_the_folder_of_a_task_is_met_with_the_class_that_opens_it(tmp_path):
    quick = FitSettings(epochs=1, epoch_steps=1)
    polyseme.Classifier(None, fit_settings=quick).set_params(settings__cells=4).fit(*opinions(8)).save(tmp_path / "c")
    with pytest.raises(FormatError, match=r"c is a fitted classifier, .*open it with polyseme.Classifier.load\('"):
        polyseme.load(tmp_path / "c")


def test_vectors_that_are_not_there(tmp_path):
    with pytest.raises(FormatError, match=r"v.npz does not exist; give a file that `polyseme embed`"):
        polyseme.read_vectors(tmp_path / "v.npz")


def test_a_folder_that_hides_the_shipped_model_is_said(tmp_path, monkeypatch, fixtures):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "english").symlink_to(fixtures / "tiny")
    with pytest.warns(UserWarning, match=r"'english' means the file or folder ./english here, not the model"):
        assert polyseme.load("english").dim == 32
    assert polyseme.load("./english").dim == 32


def test_an_encoder_is_shown_in_one_line(fixtures):
    shown = repr(polyseme.load(fixtures / "tiny"))
    assert shown.startswith("<ElmoEncoder tiny: 3 layers of 32 dimensions, ")
    assert shown.endswith(" parameters, float32 on cpu>")


def test_raw_text_where_words_belong_is_met_with_the_tokenizer(fixtures):
    layer = polyseme.ElmoLayer.from_pretrained(fixtures / "tiny")
    for wrong in ("He sat.", ["He sat.", "She sat."]):
        with pytest.raises(InputError, match=WORDS_FIRST):
            layer(wrong)


def test_a_language_model_says_so_too():
    model = polyseme.LanguageModel.load()
    for call in (model.score, model.predict_next, lambda text: list(model.score_all([text]))):
        with pytest.raises(InputError, match=WORDS_FIRST):
            call("He sat.")
