"""What is made of layers: which are taken, what is learned, and what it costs."""

import pytest
import torch
from tiny_models import make_encoder
from transformer_models import make_transformer

from polyseme.embedding.layers import STRATEGIES, choose
from polyseme.errors import ConfigError
from polyseme.tasks.features.bilstm import layers_of_weights
from polyseme.tasks.features.mixing import LayerMix, Mixes, MixSettings
from polyseme.tasks.parameters import merged, parse_settings

LAYERS = torch.randn(2, 6, 3, 4, generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[True, True, True], [True, False, False]])


@pytest.mark.parametrize("layers", ["all", "average", "top", "0", "4", "0.5,0.5,0,0,0,0", *STRATEGIES])
def test_at_first_a_mix_is_what_choose_says(layers):
    mix = LayerMix(6, 4, MixSettings(layers))
    found = mix(LAYERS, MASK)
    choice = {"all": "average", "0": 0, "4": 4}.get(layers, layers)
    if layers == "0.5,0.5,0,0,0,0":
        expected = LAYERS[0, :2].mean(dim=0)
    else:
        expected = torch.from_numpy(choose(LAYERS[0].numpy(), choice))
    assert found.shape == (2, 3, mix.dim)
    torch.testing.assert_close(found[0], expected)
    assert not found[1, 1:].any()


@pytest.mark.parametrize(
    ("layers", "learned"), [("all", True), ("weighted-sum-last-four", True), ("average", False), ("2", False)]
)
def test_weights_are_learned_where_there_is_something_to_weigh(layers, learned):
    mix = LayerMix(6, 4, MixSettings(layers, l2=1))
    assert mix.mix.scores.requires_grad is learned
    assert mix.mix.gamma.requires_grad
    with torch.no_grad():
        mix.mix.scores.fill_(2.0)
    assert (mix.penalty().item() > 0) is learned


def test_the_penalty_is_lambda_times_the_squares_of_the_scores():
    mixes = Mixes([(3, 4), (2, 5)], MixSettings(l2=0.1))
    with torch.no_grad():
        mixes.parts[0].mix.scores.copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert mixes.penalty().item() == pytest.approx(1.4)
    assert mixes.dim == 9


def test_gamma_may_stay_one():
    mix = LayerMix(6, 4, MixSettings(gamma="one"))
    mix(LAYERS, MASK).sum().backward()
    assert mix.mix.gamma.grad is None
    assert mix.mix.scores.grad is not None


def test_layer_norm_brings_each_layer_to_one_size():
    shares = [
        LayerMix(6, 4, MixSettings("3", layer_norm=norm))(LAYERS * scale, MASK)
        for norm, scale in (("sentence", 1), ("sentence", 100), ("none", 100))
    ]
    torch.testing.assert_close(shares[0], shares[1])
    assert shares[2].abs().max() > 10


def test_what_was_learned_names_all_layers():
    fitted = LayerMix(6, 4, MixSettings("weighted-sum-last-four")).fitted()
    assert fitted.weights == (0, 0, 0.25, 0.25, 0.25, 0.25)
    assert fitted.gamma == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gamma": "fixed"}, "gamma must be one of learned, one"),
        ({"l2": -1}, "l2 must be a number of 0 or more"),
        ({"dropout": 1}, "dropout must be a number of 0 or more and below 1"),
        ({"layers": "topp"}, "Did you mean 'top'"),
        ({"layer_norm": "allennlp"}, "none, sentence"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        MixSettings(**wrong)


def test_layers_that_a_model_does_not_have_are_refused():
    with pytest.raises(ConfigError, match="there is no layer 7"):
        LayerMix(6, 4, MixSettings("7"))
    with pytest.raises(ConfigError, match="2 weights, but there are 6"):
        LayerMix(6, 4, MixSettings("0.5,0.5"))


@pytest.mark.parametrize("make", [make_encoder, make_transformer])
def test_weights_are_found_by_the_layer_they_first_have_a_part_in(make):
    encoder = make()
    groups = layers_of_weights(encoder.requires_grad_(True), encoder.collate([["the", "bank"]]))
    names = {id(weight): name for name, weight in encoder.named_parameters()}
    found = [{names[id(weight)] for weight in group} for group in groups]
    assert len(found) == encoder.num_layers
    assert all(found)
    for number, group in enumerate(found[1:]):
        part = f".{number}." if make is make_encoder else f"layer.{number}."
        assert all(part in name for name in group)
    assert not any("lstms" in name or "encoder.layer" in name for name in found[0])


def test_settings_are_typed_as_paths():
    typed = ["tagger.mix.l2=0", "tagger.spelling=null", "fit.rate=0.01", "tagger.where=both"]
    tables = parse_settings(typed, ["tagger", "fit"])
    assert tables == {"tagger": {"mix": {"l2": 0}, "spelling": None, "where": "both"}, "fit": {"rate": 0.01}}
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}}) == {"a": {"b": 1, "c": 4}, "d": 3}
    for wrong in ("rate=1", "tagger.rate", "model.x=1"):
        with pytest.raises(ConfigError, match=r"starting with tagger\. or fit\."):
            parse_settings([wrong], ["tagger", "fit"])
    with pytest.raises(ConfigError, match="contradicts"):
        parse_settings(["fit.rate=1", "fit.rate.low=2"], ["fit"])
