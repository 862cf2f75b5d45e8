"""`from_pretrained` and `save_pretrained` mean what `load` and `save` mean, wherever these are."""

import inspect

import numpy as np
import pytest
from language_models import make_language_model
from tiny_models import make_encoder

import polyseme
import polyseme.corpus
import polyseme.tasks
import polyseme.training
from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.errors import OutputError

SENTENCES = [["He", "sat", "on", "the", "bank", "."], []]


@pytest.mark.parametrize("owner", [ElmoEncoder, polyseme.LanguageModel, polyseme.Tagger, polyseme.Classifier])
def test_both_pairs_of_names_are_the_same_functions(owner):
    parameters = [inspect.signature(getattr(owner, name)).parameters for name in ("load", "from_pretrained")]
    assert parameters[0] == parameters[1]
    assert inspect.signature(owner.save) == inspect.signature(owner.save_pretrained)


def test_the_function_of_the_package_too():
    assert polyseme.from_pretrained is polyseme.load


def test_a_saved_encoder_opens_with_the_same_vectors(tmp_path):
    encoder = make_encoder()
    encoder.save_pretrained(tmp_path / "model")
    for opened in (polyseme.load(tmp_path / "model"), ElmoEncoder.from_pretrained(tmp_path / "model")):
        assert opened.name == "model"
        for mine, theirs in zip(opened.embed(SENTENCES), encoder.embed(SENTENCES), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_an_encoder_is_not_saved_over_another_unasked(tmp_path):
    make_encoder().save(tmp_path / "model")
    with pytest.raises(OutputError, match="overwrite"):
        make_encoder(seed=1).save(tmp_path / "model")
    make_encoder(seed=1).save(tmp_path / "model", precision="int8", overwrite=True)
    assert polyseme.load(tmp_path / "model").dim == make_encoder().dim


def test_a_saved_language_model_keeps_its_head(tmp_path):
    model = make_language_model()
    model.save_pretrained(tmp_path / "model")
    opened = polyseme.LanguageModel.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(opened.score(SENTENCES[0]).forward, model.score(SENTENCES[0]).forward)


def test_help_shows_what_there_is():
    named = {name for name in polyseme.__all__ if name != "__version__"}
    assert polyseme.__doc__ is not None
    assert {name for name in named if f"`{name}`" not in polyseme.__doc__} <= {"PolysemeError"}


@pytest.mark.parametrize("package", [polyseme, polyseme.corpus, polyseme.tasks, polyseme.training])
def test_every_public_name_is_there_and_no_other(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert dir(package) == sorted(package.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing
