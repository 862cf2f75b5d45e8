import pytest

from polyseme.errors import ConfigError
from polyseme.model import BiLM, BiLMConfig, CharCnnConfig, InputConfig, LstmConfig, medium, original, small, tiny
from polyseme.model.config import from_dict, to_dict


@pytest.mark.parametrize(("preset", "parameters"), [(small, 13_593_296), (medium, 28_027_728), (original, 93_600_848)])
def test_presets_have_the_published_number_of_parameters(preset, parameters):
    assert sum(p.numel() for p in _on_meta(preset()).parameters()) == parameters


def _on_meta(config):
    import torch

    with torch.device("meta"):
        return BiLM(config)


@pytest.mark.parametrize("preset", [tiny, small, medium, original])
def test_settings_survive_json(preset):
    import json

    assert from_dict(BiLMConfig, json.loads(json.dumps(to_dict(preset())))) == preset()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lstm": {"cels": 3, "dim": 2}}, "lstm has no setting 'cels'. Did you mean 'cells'?"),
        ({"lstm": {"cells": 3}}, "lstm lacks the setting 'dim'"),
        ({"lstm": {"cells": "3", "dim": 2}}, "lstm.cells must be int, not '3'"),
        ({"lstm": [1]}, "lstm must be a table of settings"),
        ({"lstm": {"cells": 3, "dim": 2, "cell_clip": -1}}, "cell_clip must be above 0"),
        ({"lstm": {"cells": 0, "dim": 2}}, "cells must be 1 or more"),
        ({"directions": ["backward", "forward"]}, "directions must be forward, backward or both"),
        ({"lstm": {"cells": 3, "dim": 99}}, "must be equal"),
    ],
)
def test_wrong_settings_are_refused_by_name(change, message):
    with pytest.raises(ConfigError, match=r".*") as caught:
        from_dict(BiLMConfig, {**to_dict(tiny()), **change})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CharCnnConfig(max_characters=5), "the widest filter reads 7"),
        (lambda: CharCnnConfig(filters=()), "pairs of width and count"),
        (lambda: CharCnnConfig(activation="gelu"), "activation must be 'relu' or 'tanh'"),
        (lambda: InputConfig(4, None), "got neither"),
        (lambda: InputConfig(4, None, num_words=3, word_dim=5, projected=False), "must be as many as dim"),
        (lambda: LstmConfig(4, 3, projected=False), "must be equal"),
        (lambda: LstmConfig(4, 3, num_layers=-1), "num_layers must be 0 to 100"),
    ],
)
def test_contradictions_are_refused(make, message):
    with pytest.raises(ConfigError) as caught:
        make()
    assert message in str(caught.value)
