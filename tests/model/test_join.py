import numpy as np
import pytest
from tiny_models import make_encoder

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.errors import ConfigError
from polyseme.model import join

SENTENCE = ["He", "sat", "on", "the", "bank", "."]


def test_a_joined_model_is_its_two_halves_side_by_side():
    forward = make_encoder(1, directions=("forward",))
    backward = make_encoder(2, directions=("backward",))
    joined = ElmoEncoder(join(forward.bilm, backward.bilm), forward.words)
    halves = [next(half.embed([SENTENCE])) for half in (forward, backward)]
    np.testing.assert_array_equal(next(joined.embed([SENTENCE])), np.concatenate(halves, axis=2))


def test_only_models_of_one_direction_and_one_shape_can_be_joined():
    forward = make_encoder(directions=("forward",)).bilm
    with pytest.raises(ConfigError, match="only models of one direction"):
        join(forward, make_encoder().bilm)
    with pytest.raises(ConfigError, match="differ in more than their direction"):
        join(forward, make_encoder(directions=("backward",), num_layers=1).bilm)
