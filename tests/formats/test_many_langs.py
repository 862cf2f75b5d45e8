"""ELMoForManyLangs folders, against its equations written out word by word."""

import json
import pickle
import zipfile

import numpy as np
import pytest
import torch
from many_langs_model import CHARS, FILTERS, WORD, WORDS, H, P, make_many_langs

import polyseme
from polyseme.errors import FormatError
from polyseme.formats import many_langs, native, open_model

SENTENCES = [["the", "bank"], ["the", "thebankthebank", "好", "<eos>", ""], []]


@pytest.fixture
def folder(tmp_path):
    return make_many_langs(tmp_path / "model")


def written_out(folder, words):
    """The published equations in numpy: layers 0 to 2 of one sentence, boundaries included."""
    t = {k: v.double().numpy() for k, v in torch.load(folder / "token_embedder.pkl", weights_only=True).items()}
    e = {k: v.double().numpy() for k, v in torch.load(folder / "encoder.pkl", weights_only=True).items()}
    tokens = [
        encode_token(t, word[:7] if word not in ("<bos>", "<eos>") else word) for word in ["<bos>", *words, "<eos>"]
    ]
    layers = [np.concatenate([tokens, tokens], axis=1)]
    halves = []
    for direction in ("forward", "backward"):
        inputs = tokens if direction == "forward" else tokens[::-1]
        outputs = []
        for layer in range(2):
            hs = lstm(e, f"{direction}_layer_{layer}", inputs)
            inputs = [h + x for h, x in zip(hs, inputs, strict=True)] if layer else hs
            outputs.append(inputs if direction == "forward" else inputs[::-1])
        halves.append(outputs)
    layers += [np.concatenate([halves[0][layer], halves[1][layer]], axis=1) for layer in range(2)]
    return np.array(layers)


def encode_token(t, word):
    spelling = [word] if word in ("<bos>", "<eos>") else list(word)
    ids = [CHARS.index("<eow>"), *(CHARS.index(c) if c in CHARS else 2 for c in spelling), CHARS.index("<bow>")]
    vectors = t["char_emb_layer.embedding.weight"][ids + [CHARS.index("<pad>")] * (9 - len(ids))]
    features = []
    for i, (width, _) in enumerate(FILTERS):
        weight, bias = t[f"convolutions.{i}.weight"], t[f"convolutions.{i}.bias"]
        windows = [np.einsum("kcw,wc->k", weight, vectors[s : s + width]) + bias for s in range(9 - width + 1)]
        features.append(np.tanh(np.max(windows, axis=0)))
    x = np.concatenate(features)
    nonlinear, gate = np.split(t["highways._layers.0.weight"] @ x + t["highways._layers.0.bias"], 2)
    gate = 1 / (1 + np.exp(-gate))
    x = gate * x + (1 - gate) * np.maximum(nonlinear, 0)
    number = WORDS.index(word) if word in WORDS else 0
    x = np.concatenate([t["word_emb_layer.embedding.weight"][number], x])
    return t["projection.weight"] @ x + t["projection.bias"]


def lstm(e, name, inputs):
    h, c, outputs = np.zeros(P), np.zeros(H), []
    for x in inputs:
        z = e[f"{name}.input_linearity.weight"] @ x + e[f"{name}.state_linearity.weight"] @ h
        i, f, g, o = np.split(z + e[f"{name}.state_linearity.bias"], 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        c = np.clip(f * c + i * np.tanh(g), -0.5, 0.5)
        h = np.clip(e[f"{name}.state_projection.weight"] @ (o * np.tanh(c)), -0.4, 0.4)
        outputs.append(h)
    return outputs


def test_the_numbers_are_those_of_its_equations(folder):
    encoder = polyseme.load(folder, boundaries=True)
    for words, vectors in zip(SENTENCES, encoder.embed(SENTENCES), strict=True):
        np.testing.assert_allclose(vectors, written_out(folder, words), atol=1e-5)


def test_ours_holds_it_bit_for_bit(folder, tmp_path):
    native.save(open_model(folder), tmp_path / "ours")
    pairs = zip(polyseme.load(folder).embed(SENTENCES), polyseme.load(tmp_path / "ours").embed(SENTENCES), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


def test_a_line_that_lost_its_token_is_the_ideographic_space(folder):
    assert open_model(folder).words.vocabulary.id("\u3000") == 6


def test_a_zip_is_opened_in_place(folder, tmp_path):
    with zipfile.ZipFile(tmp_path / "179.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"179/{file.name}")
    assert polyseme.load(tmp_path / "179.zip").dim == 2 * P


def test_without_an_architecture_file_the_packaged_default_is_taken(folder):
    (folder / "tiny.json").unlink()
    with pytest.raises(FormatError, match=r"convolutions\.3\.weight"):  # the default has seven filters
        open_model(folder)
    encoder, token = many_langs.DEFAULT["encoder"], many_langs.DEFAULT["token_embedder"]
    assert (encoder["projection_dim"], encoder["dim"], token["word_dim"], token["char_dim"]) == (512, 4096, 100, 50)


def test_a_pickle_that_runs_code_is_not_opened(folder, tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    (folder / "encoder.pkl").write_bytes(pickle.dumps({"weight": Trap()}, protocol=2))
    with pytest.raises(FormatError, match=r"encoder\.pkl is not a plain pickle of tensors, so it is not opened"):
        open_model(folder)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("encoder.pkl", b"", "encoder.pkl is not a plain pickle of tensors"),
        ("encoder.pkl", b"\x80\x02garbage", "encoder.pkl is not a plain pickle of tensors"),
        ("char.dic", b"a\t0\n", "char.dic has 1 entries, but the weights have 14 rows"),
        ("char.dic", b"a\tb\n", "char.dic line 1: expected a token, a tab and a number below 14"),
        ("char.dic", b"\xff\t1\n", "char.dic cannot be read"),
        ("word.dic", None, "word.dic cannot be read"),
        ("tiny.json", b"{", "tiny.json is not JSON"),
        ("tiny.json", b'{"token_embedder": {"name": "lstm"}, "encoder": {"name": "elmo"}}', "only the 'cnn' token"),
        (
            "tiny.json",
            b'{"token_embedder": {"name": "cnn"}, "encoder": {"name": "elmo"}}',
            "'char_dim', expected by",
        ),
    ],
)
def test_damaged_parts_are_named(folder, name, content, message):
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(FormatError) as caught:
        open_model(folder)
    assert message in str(caught.value)


def test_a_tensor_list_is_not_a_model(folder):
    torch.save([torch.zeros(3)], folder / "encoder.pkl")
    with pytest.raises(FormatError, match="should hold tensors by name, not list"):
        open_model(folder)


def test_a_model_of_word_numbers_crops_before_it_looks_up(folder):
    """Its reader crops to max_characters_per_token - 2 whether or not characters are used."""
    architecture = json.loads((folder / "tiny.json").read_text())
    architecture["token_embedder"]["char_dim"] = 0
    (folder / "tiny.json").write_text(json.dumps(architecture))
    tensors = torch.load(folder / "token_embedder.pkl", weights_only=True)
    tensors["projection.weight"] = torch.randn(P, WORD)
    torch.save(tensors, folder / "token_embedder.pkl")
    lines = [f"{word}\t{i}\n" for i, word in enumerate([*WORDS[:5], "bankban", "\u3000"])]
    (folder / "word.dic").write_text("".join(lines), "utf-8")
    encoder = polyseme.load(folder)
    known, other = encoder.embed_words(["bankbank", "bankbanks"])
    np.testing.assert_array_equal(known, other)
    assert np.abs(known - encoder.embed_words(["unknown"])[0]).max() > 0


def test_the_architecture_may_lie_in_a_folder_inside(folder):
    (folder / "configs").mkdir()
    (folder / "tiny.json").rename(folder / "configs" / "tiny.json")
    (folder / "config.json").write_text(json.dumps({"config_path": "configs/tiny.json"}))
    assert polyseme.load(folder).dim == 2 * P
    (folder / "config.json").write_text(json.dumps({"config_path": "../../elsewhere.json"}))
    with pytest.raises(FormatError, match="expected by its default architecture"):
        polyseme.load(folder)


def test_a_word_twice_in_the_dictionary_is_told_with_its_file(folder):
    (folder / "word.dic").write_text("".join(f"{w}\t{i}\n" for i, w in enumerate([*WORDS[:5], "the", "x"])))
    with pytest.raises(FormatError, match=r"word\.dic"):
        polyseme.load(folder)
