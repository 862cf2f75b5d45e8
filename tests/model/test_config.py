import math

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
        ({"lstm": {"cells": 0, "dim": 2}}, "cells must be 1 to 131,072"),
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
        (lambda: LstmConfig(4, 3, forget_bias=1e308), "forget_bias must be -100.0 to 100.0; got 1e+308"),
        (lambda: LstmConfig(4, 3, forget_bias=math.nan), "forget_bias must be -100.0 to 100.0; got nan"),
        (lambda: LstmConfig(4, 3, cell_clip=1e308), "cell_clip must be above 0, at most 1e+30"),
        (lambda: LstmConfig(4, 3, output_clip=1e-320), "output_clip must be above 0"),
        (lambda: LstmConfig(10**9, 3), "cells must be 1 to 131,072; got 1000000000"),
        (lambda: CharCnnConfig(max_characters=2 * 10**9), "max_characters must be 3 to 1,000; got 2000000000"),
        (
            lambda: CharCnnConfig(filters=((1, 1),) * 200_000),
            "at most 100 widths and 131,072 in all; got 200,000 widths",
        ),
        (lambda: CharCnnConfig(filters=((1, 10**9),)), "got 1 widths and 1,000,000,000 filters"),
        (lambda: InputConfig(4, None, num_words=-3, word_dim=4), "num_words must be 0 to 2,147,483,648"),
    ],
)
def test_contradictions_are_refused(make, message):
    with pytest.raises(ConfigError) as caught:
        make()
    assert message in str(caught.value)
