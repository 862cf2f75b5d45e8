import copy
import io

import numpy as np
import pytest
import torch
from tiny_models import make_encoder
from torch import nn

import polyseme
from polyseme.errors import ConfigError

SENTENCES = [["I", "put", "my", "books", "in", "the", "bag", "."], ["Elmo", "!"], []]


def test_word_lists_in_vectors_and_mask_out():
    vectors, mask = polyseme.ElmoLayer(make_encoder()).eval()(SENTENCES)
    assert vectors.shape == (3, 8, 12)
    assert mask.sum(dim=1).tolist() == [8, 2, 0]
    assert not vectors[~mask].any()


def test_an_untrained_layer_gives_the_mean_of_the_layers():
    encoder = make_encoder()
    vectors, _ = polyseme.ElmoLayer(encoder).eval()(SENTENCES)
    np.testing.assert_allclose(vectors[0].detach(), next(encoder.embed(SENTENCES)).mean(axis=0), atol=1e-5)


def test_several_mixes_come_from_one_pass():
    encoder = make_encoder()
    calls = []
    encoder.bilm.register_forward_hook(lambda *_: calls.append(1))
    layer = polyseme.ElmoLayer(encoder, num_mixes=2).eval()
    with torch.no_grad():
        layer.mixes[1].scores.copy_(torch.tensor([9.0, 0.0, 0.0]))
    vectors, _ = layer(SENTENCES)
    assert len(vectors) == 2
    assert not torch.allclose(vectors[0], vectors[1])
    assert len(calls) == 1


def test_frozen_by_default_and_only_the_mix_learns():
    layer = polyseme.ElmoLayer(make_encoder()).train()
    assert not layer.encoder.training
    layer(SENTENCES).vectors.square().sum().backward()
    learned = {name for name, p in layer.named_parameters() if p.grad is not None}
    assert learned == {"mixes.0.scores", "mixes.0.gamma"}


def test_trainable_reaches_the_characters():
    layer = polyseme.ElmoLayer(make_encoder(), trainable=True).train()
    layer(SENTENCES).vectors.square().sum().backward()
    assert layer.encoder.bilm.inputs[0].characters.embedding.weight.grad.abs().any()


def test_dropout_works_in_training_only():
    layer = polyseme.ElmoLayer(make_encoder(), dropout=0.5)
    first, second = (layer(SENTENCES).vectors for _ in range(2))
    assert not torch.equal(first, second)
    layer.eval()
    torch.testing.assert_close(layer(SENTENCES).vectors, layer(SENTENCES).vectors)


def test_it_is_a_layer_like_any_other():
    layer = polyseme.ElmoLayer(make_encoder(), scores=[1.0, 0.0, 0.5]).eval()
    expected = layer(SENTENCES).vectors
    other = polyseme.ElmoLayer(make_encoder(seed=5)).eval()
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other(SENTENCES).vectors, expected)
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    torch.testing.assert_close(torch.load(buffer, weights_only=False)(SENTENCES).vectors, expected)
    torch.testing.assert_close(copy.deepcopy(layer)(SENTENCES).vectors, expected)
    assert layer.double()(SENTENCES).vectors.dtype == torch.float64


def test_a_collated_batch_may_come_from_a_data_loader():
    layer = polyseme.ElmoLayer(make_encoder()).eval()
    loader = torch.utils.data.DataLoader(SENTENCES[:2], batch_size=2, collate_fn=layer.collate, num_workers=0)
    torch.testing.assert_close(layer(next(iter(loader))).vectors, layer(SENTENCES[:2]).vectors)


def test_boundaries_are_kept_when_the_encoder_keeps_them(fixtures):
    layer = polyseme.ElmoLayer(polyseme.load(fixtures / "tiny", boundaries=True)).eval()
    vectors, mask = layer([["Elmo", "!"]])
    assert vectors.shape[1] == 4
    assert mask.all()


def test_distributed_training_takes_it(tmp_path):
    """Gradients of the mix flow through DistributedDataParallel (a world of one)."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    try:
        network = nn.parallel.DistributedDataParallel(polyseme.ElmoLayer(make_encoder()))
        network(SENTENCES).vectors.sum().backward()
        assert network.module.mixes[0].gamma.grad is not None
    finally:
        torch.distributed.destroy_process_group()


def test_static_vectors_learn_when_asked_to(tmp_path):
    (tmp_path / "vectors.txt").write_text("the 1 0\nbank 0 1\n")
    layer = polyseme.ElmoLayer.from_pretrained(tmp_path / "vectors.txt", trainable=True, cache=False, dropout=0.0)
    layer([["the", "bank", "zebra"]]).vectors.sum().backward()
    assert layer.encoder.weight.grad.any(dim=1).all()
    frozen = polyseme.ElmoLayer.from_pretrained(tmp_path / "vectors.txt", cache=False)
    assert not any(weight.requires_grad for weight in frozen.encoder.parameters())


def test_no_mixes_are_refused():
    with pytest.raises(ConfigError, match="num_mixes must be 1 or more"):
        polyseme.ElmoLayer(make_encoder(), num_mixes=0)
