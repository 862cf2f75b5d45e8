"""Transformers as encoders. The reference is transformers itself: one sentence at a time, no padding, pooled here."""

import copy
import json
import pickle
import shutil
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformer_models import KINDS, LONGEST, make_model, make_tokenizer, make_transformer, save_transformer

import polyseme
from polyseme.backends.transformer.encoder import TransformerEncoder
from polyseme.backends.transformer.pieces import best_stretches, like_sized, overlapping
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.errors import ConfigError, FormatError, MissingExtraError

POOLINGS = {"first": lambda v: v[:, 0], "last": lambda v: v[:, -1], "mean": lambda v: v.mean(axis=1)}
SENTENCES = [
    ["He", "sat", "on", "the", "bank", "of", "the", "river", "."],
    ["https://t.co/aB3", "unhurriedly"],
    ["👩‍👩‍👧‍👦", "."],
    ["the"],
    [],
]


@torch.inference_mode()
def own_vectors(model, tokenizer, words, pooling="mean"):
    """What transformers' own hidden states give for a sentence that fits, a zero vector for a word without a piece."""
    encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    states = torch.stack(model(**encoded, output_hidden_states=True).hidden_states)[:, 0].numpy()
    places = [[p for p, word in enumerate(encoded.word_ids()) if word == number] for number in range(len(words))]
    zeros = np.zeros((states.shape[0], states.shape[2]), dtype=np.float32)
    vectors = [POOLINGS[pooling](states[:, at]) if at else zeros for at in places]
    return np.stack(vectors, axis=1) if words else states[:, :0]


def own_tokenizer(kind):
    tokenizer = make_tokenizer(kind)
    return type(tokenizer)(vocab=tokenizer.get_vocab(), **_merges(tokenizer)) if kind == "RoBERTa" else tokenizer


def _merges(tokenizer):
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    return {"merges": [tuple(pair) for pair in merges], "add_prefix_space": True}


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_those_of_transformers_after_pooling(kind, pooling):
    encoder = make_transformer(kind, pooling=pooling)
    model, tokenizer = make_model(kind), own_tokenizer(kind)
    for words, vectors in zip(SENTENCES, encoder.embed(SENTENCES), strict=True):
        expected = own_vectors(model, tokenizer, words, pooling)
        assert vectors.shape == expected.shape == (5, len(words), 16)
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_sentence_is_read_in_windows_and_each_word_taken_from_where_it_is_farthest_from_an_edge(kind):
    words = [word for number in range(30) for word in ("the", "bank", f"x{number}", "\u200b")]
    (vectors,) = make_transformer(kind).embed([words])
    expected, windows = windowed(make_model(kind), own_tokenizer(kind), words)
    assert windows > 5
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


def windowed(model, tokenizer, words):
    """The same by trial: all stretches are run whole, and of all that hold a word the best is kept."""
    sizes = [len(tokenizer([word], is_split_into_words=True, add_special_tokens=False).input_ids) for word in words]
    room, total = LONGEST - 2, len(words)
    stretches, first = [], 0
    while True:
        end = max(e for e in range(first, total + 1) if sum(sizes[first:e]) <= room)
        if end == total:
            first = min(f for f in range(total) if sum(sizes[f:]) <= room)
            break
        stretches.append((first, end))
        fits = (f for f in range(end + 1) if sum(sizes[f : end + 1]) <= room)
        first = min(f for f in fits if sum(sizes[f:end]) <= room // 2)
    stretches.append((first, total))
    runs = [own_vectors(model, tokenizer, words[first:end]) for first, end in stretches]
    columns = []
    for word in range(total):
        margins = {}
        for number, (first, end) in enumerate(stretches):
            if first <= word < end:
                left = sum(sizes[first:word]) if first else 10**9
                right = sum(sizes[word + 1 : end]) if end < total else 10**9
                margins[number] = min(left, right)
        best = max(margins, key=lambda number: (margins[number], -number))
        columns.append(runs[best][:, word - stretches[best][0]])
    return np.stack(columns, axis=1), len(stretches)


@given(st.lists(st.integers(0, 8), max_size=60), st.integers(8, 30))
def test_stretches_hold_every_word_whole_fit_and_overlap(sizes, room):
    stretches = overlapping(sizes, room)
    assert stretches[0][0] == 0
    assert stretches[-1][1] == len(sizes)
    assert all(sum(sizes[first:end]) <= room for first, end in stretches)
    assert all(before[0] < after[0] <= before[1] < after[1] for before, after in pairwise(stretches))
    assert (len(stretches) == 1) == (sum(sizes) <= room)
    for word, number in enumerate(best_stretches(sizes, stretches)):
        first, end = stretches[number]
        assert first <= word < end


@given(st.lists(st.integers(1, 8), min_size=100, max_size=200))
def test_every_word_has_context_on_both_sides(sizes):
    room = 64
    stretches = overlapping(sizes, room)
    for word, number in enumerate(best_stretches(sizes, stretches)):
        first, end = stretches[number]
        assert first == 0 or sum(sizes[first:word]) >= room // 4 - 8
        assert end == len(sizes) or sum(sizes[word + 1 : end]) >= room // 4 - 8


@given(st.lists(st.integers(0, 30)), st.integers(1, 90))
def test_rows_are_grouped_within_the_budget_with_their_padding(sizes, budget):
    groups = like_sized(sizes, budget)
    assert sorted(number for group in groups for number in group) == [n for n, size in enumerate(sizes) if size]
    for group in groups:
        assert len(group) == 1 or len(group) * max(sizes[number] for number in group) <= budget


@pytest.mark.parametrize("kind", KINDS)
def test_a_dropped_word_is_zero_reported_and_shifts_nobody(kind):
    encoder = make_transformer(kind)
    dropped = (
        ["", ""] if kind == "RoBERTa" else ["\u200b", "\x00", "", "\ud800"]
    )  # a byte-level tokeniser reads all else
    words = ["the", *dropped, "bank", *dropped, "."]
    vectors, plain = encoder.embed([words, ["the", "bank", "."]])
    present = [0, len(dropped) + 1, len(words) - 1]
    np.testing.assert_allclose(vectors[:, present], plain, rtol=0, atol=1e-6)
    assert not np.delete(vectors, present, axis=1).any()
    assert encoder.misread(words)["without a piece in this model's tokeniser, and are zeros"] == 2 * len(dropped)
    assert not any(encoder.misread(["the", "bank", "."]).values())


def test_a_word_larger_than_a_window_is_cropped_and_reported():
    encoder = make_transformer("RoBERTa")
    words = ["the", "x" * 200, "bank"]
    (vectors,) = encoder.embed([words])
    room = LONGEST - 2
    assert encoder.misread(words)[f"longer than the {room} pieces this model reads, and cropped"] == 1
    fits = "x" * (room - 1)  # a space goes before it
    np.testing.assert_allclose(vectors, next(encoder.embed([["the", fits, "bank"]])), rtol=0, atol=1e-6)


def test_boundaries_are_the_special_pieces():
    encoder, tokenizer = make_transformer(settings=EmbedSettings(boundaries=True)), make_tokenizer("BERT")
    words = ["the", "bank"]
    encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.inference_mode():
        states = torch.stack(make_model("BERT")(**encoded, output_hidden_states=True).hidden_states)[:, 0]
    np.testing.assert_allclose(next(encoder.embed([words])), states, rtol=0, atol=1e-5)


def without_specials():
    """GPT-2 reads forward only and has no special pieces around a sentence."""
    transformers = pytest.importorskip("transformers")
    tokenizer = make_tokenizer("RoBERTa")
    plain = transformers.GPT2TokenizerFast(vocab=tokenizer.get_vocab(), merges=_merges(tokenizer)["merges"])
    config = transformers.GPT2Config(vocab_size=len(plain), n_positions=LONGEST, n_embd=16, n_layer=2, n_head=2)
    return transformers.GPT2Model(config), plain


def test_a_model_without_special_pieces_has_no_boundaries():
    model, tokenizer = without_specials()
    encoder = TransformerEncoder(model, tokenizer, name="gpt")
    assert [vectors.shape for vectors in encoder.embed([["the", "bank"], [], [""]])] == [(3, n, 16) for n in (2, 0, 1)]
    assert not next(encoder.embed([[""]])).any()
    with pytest.raises(ConfigError, match="gpt has no pieces that open and close a sentence"):
        TransformerEncoder(model, tokenizer, EmbedSettings(boundaries=True), "gpt")


def test_the_encoder_of_an_encoder_and_decoder_is_taken(tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim"), 16)
    heads = dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "encoder_layers"), 2)
    tokenizer = make_tokenizer("RoBERTa")
    config = transformers.BartConfig(
        vocab_size=len(tokenizer), max_position_embeddings=LONGEST, decoder_layers=1, **sizes, **heads
    )
    transformers.BartModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    encoder = polyseme.load(tmp_path)
    assert next(encoder.embed([["the", "bank"] * 20])).shape == (3, 40, 16)


def test_what_is_no_encoder_of_text_is_refused():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = transformers.ViTModel(transformers.ViTConfig(image_size=8, patch_size=4, **sizes))
    with pytest.raises(FormatError, match="eye is a ViTModel, which gives no layers for text alone"):
        TransformerEncoder(model, make_tokenizer("BERT"), name="eye")


@pytest.mark.parametrize("kind", KINDS)
def test_it_pickles_and_copies_after_use(kind):
    encoder = make_transformer(kind)
    (expected,) = encoder.embed(SENTENCES[:1])
    for twin in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder)):
        np.testing.assert_array_equal(next(twin.embed(SENTENCES[:1])), expected)
        assert twin.fingerprint() == encoder.fingerprint()
    np.testing.assert_array_equal(next(encoder.embed(SENTENCES[:1])), expected)
    batch = encoder.collate(SENTENCES)
    torch.testing.assert_close(encoder(pickle.loads(pickle.dumps(batch)))[0], encoder(batch)[0])


def test_several_processes_give_the_same():
    encoder = make_transformer()
    expected = list(encoder.embed(SENTENCES * 4))
    encoder.settings = EmbedSettings(word_budget=16, workers=2)
    for vectors, reference in zip(encoder.embed(SENTENCES * 4), expected, strict=True):
        np.testing.assert_allclose(vectors, reference, rtol=0, atol=1e-6)


def test_fingerprints_tell_weights_words_and_pooling_apart():
    plain = make_transformer().fingerprint()
    assert make_transformer().fingerprint() == plain
    others = [make_transformer(pooling="first"), TransformerEncoder(make_model("BERT", seed=1), make_tokenizer("BERT"))]
    shuffled = make_tokenizer("BERT")
    shuffled.add_tokens(["zyzzyva"])
    others.append(TransformerEncoder(make_model("BERT"), shuffled))
    assert len({plain, *(encoder.fingerprint() for encoder in others)}) == 4


def test_a_fingerprint_does_not_depend_on_where_the_model_lies(folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path / "copy")
    monkeypatch.chdir(tmp_path)
    prints = {polyseme.load(path).fingerprint() for path in (folder, tmp_path / "copy", "copy")}
    assert prints == {make_transformer().fingerprint()}


def test_its_layers_mix_as_elmo_s_do_and_it_learns_only_when_asked():
    frozen = polyseme.ElmoLayer(make_transformer(), dropout=0.0).train()
    assert not frozen.encoder.model.training
    vectors, mask = frozen(SENTENCES)
    assert mask.sum(dim=1).tolist() == list(map(len, SENTENCES))
    expected = next(make_transformer().embed(SENTENCES)).mean(axis=0)
    np.testing.assert_allclose(vectors[0].detach(), expected, rtol=0, atol=1e-5)
    vectors.square().sum().backward()
    assert {name for name, p in frozen.named_parameters() if p.grad is not None} == {"mixes.0.scores", "mixes.0.gamma"}
    learning = polyseme.ElmoLayer(make_transformer(), trainable=True).train()
    assert learning.encoder.model.training
    learning(learning.collate(SENTENCES)).vectors.square().sum().backward()
    assert learning.encoder.model.embeddings.word_embeddings.weight.grad.abs().any()
    with pytest.raises(ConfigError, match="counts ELMo's boundary words in"):
        polyseme.ElmoLayer(make_transformer(), layer_norm="allennlp")


def test_documents_are_for_elmo():
    with pytest.raises(ConfigError, match="only an ELMo model embeds whole documents"):
        make_transformer().embed_documents([[["the"]]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_transformer(tmp_path_factory.mktemp("models") / "tiny-bert")


def test_a_folder_opens_without_a_network_or_a_word(folder, monkeypatch, capfd):
    def no_network(*_):
        raise AssertionError("the network was touched")

    monkeypatch.setattr("socket.getaddrinfo", no_network)
    monkeypatch.setattr("socket.socket.connect", no_network)
    encoder = polyseme.load(folder, pooling="first", word_budget=64)
    assert (encoder.name, encoder.num_layers, encoder.dim, encoder.training) == ("tiny-bert", 5, 16, False)
    expected = make_transformer(pooling="first")
    np.testing.assert_array_equal(next(encoder.embed(SENTENCES)), next(expected.embed(SENTENCES)))
    np.testing.assert_array_equal(
        next(polyseme.load(folder / "config.json", pooling="first").embed(SENTENCES)), next(encoder.embed(SENTENCES))
    )
    assert capfd.readouterr() == ("", "")


def test_a_checkpoint_with_a_head_and_in_half_precision_opens_as_an_encoder_in_full(tmp_path, capfd):
    transformers = pytest.importorskip("transformers")
    whole = transformers.BertForMaskedLM(make_model("BERT").config).half()
    whole.save_pretrained(tmp_path)
    make_tokenizer("BERT").save_pretrained(tmp_path)
    capfd.readouterr()
    encoder = polyseme.load(tmp_path)
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}
    torch.testing.assert_close(
        encoder.model.embeddings.word_embeddings.weight, whole.bert.embeddings.word_embeddings.weight.float()
    )
    assert capfd.readouterr() == ("", "")


def test_weights_that_are_missing_are_refused_and_not_made_up(folder, tmp_path):
    from safetensors.torch import load_file, save_file

    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(FormatError, match=r"lacks weights, encoder.layer.1.output.dense.weight for one \(1 in all\)"):
        polyseme.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"nonsense"),
        ("model.safetensors", None),
        ("tokenizer.json", b"{}"),
        ("config.json", b'{"model_type": "never-heard-of"}'),
    ],
)
def test_a_folder_that_is_not_whole_is_one_sentence(folder, tmp_path, name, content):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match="transformers cannot open") as caught:
        polyseme.load(tmp_path)
    assert "\n" not in str(caught.value)


class Answers:
    """A hub that answers, or does not."""

    def __init__(self, status):
        self.status_code = status

    def head(self, *_, **__):
        if self.status_code is None:
            raise OSError("no route to host")
        return self


@pytest.mark.parametrize("name", ["nobody/never-was", "never-was"])
@pytest.mark.parametrize(("status", "message"), [(None, "cannot be reached"), (404, "nor as an open model")])
def test_a_name_that_the_hub_does_not_give_is_one_sentence(monkeypatch, name, status, message):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "get_session", lambda: Answers(status))
    with pytest.raises(FormatError, match=f"{name} does not exist here.*{message}"):
        polyseme.load(name)


@pytest.mark.parametrize("name", ["weights.hdf5", "/no/where", "tests/fixtures/huge", "a/b/c", "vectors.txt"])
def test_what_can_only_be_a_path_is_not_looked_for_on_the_hub(name):
    with pytest.raises(FormatError, match="does not exist; give the path"):
        polyseme.load(name)


def test_a_missing_extra_is_named(folder, monkeypatch):
    for name in ("transformers", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'polyseme\[transformers\]'"):
        polyseme.load(folder)
    with pytest.raises(MissingExtraError, match=r"does not exist here.*pip install 'polyseme\[transformers\]'"):
        polyseme.load("nobody/never-was")


def test_settings_of_another_kind_of_model_are_refused(folder, fixtures):
    with pytest.raises(ConfigError, match="is an ELMo model, which has no setting 'pooling'"):
        polyseme.load(fixtures / "tiny", pooling="mean")
    with pytest.raises(ConfigError, match="is a transformer, which has no setting 'vocabulary'"):
        polyseme.load(folder, vocabulary="words.txt")
    with pytest.raises(ConfigError, match=r"pooling must be 'first', 'last' or 'mean', not 'men'.*Did you mean 'mean'"):
        polyseme.load(folder, pooling="men")


def test_info_describes_a_transformer(call, folder):
    status, out, _ = call("info", folder)
    assert status == 0
    assert all(
        fact in out for fact in ("BertModel", "40 pieces at a time", "layers of vectors", "the mean of a word's")
    )
    assert json.loads(call("info", folder, "--json")[1])["dimensions"] == 16


def test_embed_writes_the_vectors_of_a_transformer_and_says_what_was_dropped(call, folder, tmp_path):
    text = tmp_path / "corpus.txt"
    text.write_text("the \u200b bank\n\n" + "the river " * 40 + "\n", "utf-8")
    sentences = [line.split() for line in text.read_text("utf-8").splitlines()]
    options = ["--model", folder, "--pooling", "first", "--layers", "concat-last-four"]
    status, _, err = call("embed", text, "-o", tmp_path / "v.npz", *options)
    assert status == 0
    assert "1 words were without a piece in this model's tokeniser, and are zeros" in err
    encoder = polyseme.load(folder, pooling="first")
    for written, vectors in zip(polyseme.read_vectors(tmp_path / "v.npz"), encoder.embed(sentences), strict=True):
        np.testing.assert_array_equal(written, polyseme.choose(vectors, "concat-last-four"))


def test_what_only_elmo_can_is_refused_on_the_command_line(call, folder, tmp_path):
    (tmp_path / "t.txt").write_text("the bank\n")
    status, _, err = call("embed", tmp_path / "t.txt", "-o", tmp_path / "v.npz", "--model", folder, "--documents")
    assert (status, err.count("\n")) == (2, 1)
    assert "only an ELMo model embeds whole documents" in err
    status, _, err = call("convert", folder, tmp_path / "out")
    assert (status, err.count("\n")) == (2, 1)
    assert "is a transformer; only ELMo models can be converted" in err
    assert [path.name for path in tmp_path.iterdir()] == ["t.txt"]


def test_nothing_else_waits_for_transformers(fixtures):
    code = f"import sys, polyseme; list(polyseme.load({str(fixtures / 'tiny')!r}).embed([['a']]))\n"
    code += "heavy = {'transformers', 'tokenizers', 'huggingface_hub', 'gensim'} & set(sys.modules)\n"
    code += "assert not heavy, heavy"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")
