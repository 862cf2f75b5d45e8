import pytest
import torch

from polyseme.errors import ConfigError
from polyseme.model import ScalarMix

LAYERS = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[True, True, True, True], [True, True, False, False]])


def test_a_new_mix_is_the_plain_mean():
    torch.testing.assert_close(ScalarMix(3)(LAYERS, MASK), LAYERS.mean(dim=1) * MASK.unsqueeze(-1))


def test_scores_are_normalised_and_gamma_scales():
    mix = ScalarMix(3, scores=[1.0, 2.0, 3.0], gamma=0.5)
    weights = torch.softmax(torch.tensor([1.0, 2.0, 3.0]), 0)
    expected = 0.5 * sum(w * LAYERS[:, j] for j, w in enumerate(weights)) * MASK.unsqueeze(-1)
    torch.testing.assert_close(mix(LAYERS, MASK), expected)
    torch.testing.assert_close(mix.weights, weights)


def test_a_frozen_mix_has_nothing_to_learn():
    assert not any(p.requires_grad for p in ScalarMix(3, scores=[0, 0, 1], trainable=False).parameters())


def test_sentence_norm_does_not_depend_on_batch_mates():
    mix = ScalarMix(3, layer_norm="sentence")
    torch.testing.assert_close(mix(LAYERS, MASK)[1:, :2], mix(LAYERS[1:, :, :2], MASK[1:, :2]))


def test_sentence_norm_gives_zero_mean_and_unit_variance():
    mix = ScalarMix(1, layer_norm="sentence")
    for layer in range(3):
        mixed = mix(LAYERS[:, layer : layer + 1], MASK)
        for row, words in enumerate((4, 2)):
            assert mixed[row, :words].mean().abs() < 1e-6
            torch.testing.assert_close(mixed[row, :words].var(unbiased=False), torch.tensor(1.0))


@pytest.mark.parametrize("norm", ["bilm-tf", "allennlp"])
def test_published_norms_are_over_all_words_of_the_batch(norm):
    mixed = ScalarMix(1, layer_norm=norm)(LAYERS[:, :1], MASK)
    words = LAYERS[:, 0][MASK]
    expected = (LAYERS[:, 0] - words.mean()) / words.var(unbiased=False).sqrt()
    torch.testing.assert_close(mixed, expected * MASK.unsqueeze(-1))


def test_wrong_numbers_and_names_are_refused():
    with pytest.raises(ConfigError, match="needs 3 scores; got 2"):
        ScalarMix(3, scores=[0, 1])
    with pytest.raises(ConfigError, match="Did you mean 'allennlp'"):
        ScalarMix(3, layer_norm="allenlp")
    with pytest.raises(ConfigError, match="this mix is for 2 layers; got 3"):
        ScalarMix(2)(LAYERS, MASK)


def test_an_empty_batch_of_words_is_not_a_division_by_zero():
    mixed = ScalarMix(3, layer_norm="sentence")(LAYERS, torch.zeros_like(MASK))
    assert not mixed.any()
