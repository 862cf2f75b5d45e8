import hashlib
import json

import numpy as np
import pytest
import torch
from tiny_models import make_encoder

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.errors import FormatError, OutputError
from polyseme.formats import StoredModel, native, open_model
from polyseme.formats.native import write_manifest
from polyseme.model import join
from polyseme.text.word_encoder import DictionaryCharacters, WordEncoder

WORDS = ["<S>", "</S>", "<UNK>", "the", "bank", "\u00a0", "a\rb"]
SENTENCES = [["the", "bank", "of", "\u00a0"], ["Straße", "pneumonoultramicroscopic"], []]


def store(encoder: ElmoEncoder) -> StoredModel:
    return StoredModel(encoder.bilm.config, encoder.bilm.state_dict(), encoder.words, "made for a test")


def joined() -> ElmoEncoder:
    forward, backward = (make_encoder(directions=(way,)) for way in ("forward", "backward"))
    return ElmoEncoder(join(forward.bilm, backward.bilm), forward.words)


def dictionary() -> ElmoEncoder:
    marks = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
    letters = (*marks, *(chr(code) for code in range(0x80, 0x80 + 255)))  # U+0085 and U+00A0 among them
    encoder = make_encoder()
    return ElmoEncoder(encoder.bilm, WordEncoder(DictionaryCharacters(letters, 20, swapped=True)))


@pytest.mark.parametrize("make", [make_encoder, lambda: make_encoder(words=WORDS), joined, dictionary])
def test_a_saved_model_gives_the_same_bits(tmp_path, make):
    encoder = make()
    native.save(store(encoder), tmp_path / "model")
    loaded = open_model(tmp_path / "model")
    again = ElmoEncoder(loaded.build(), loaded.words)
    assert loaded.words.characters == encoder.words.characters
    for one, other in zip(encoder.embed(SENTENCES), again.embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("precision", "bound", "share"), [("fp16", 1e-3, 0.6), ("int8", 5e-3, 0.4)])
def test_smaller_storage_costs_a_little(tmp_path, fixtures, precision, bound, share):
    full = open_model(fixtures / "tiny")
    native.save(full, tmp_path / "model", precision)
    small = open_model(tmp_path / "model")
    assert small.precision == precision
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (tmp_path / "model", fixtures / "tiny")]
    assert sizes[0] < share * sizes[1]
    for name, weight in full.weights.items():
        assert small.weights[name].dtype == torch.float32
        assert (small.weights[name] - weight).abs().max() <= bound * weight.abs().max()
    exact, close = (ElmoEncoder(stored.build(), stored.words) for stored in (full, small))
    for one, other in zip(exact.embed(SENTENCES[:2]), close.embed(SENTENCES[:2]), strict=True):
        cosine = (one * other).sum(-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)
        assert cosine.min() > 0.999


def test_rounding_to_int8_is_at_most_half_a_step_of_its_output(tmp_path, fixtures):
    full = open_model(fixtures / "tiny")
    native.save(full, tmp_path / "model", "int8")
    small = open_model(tmp_path / "model")
    for name, weight in full.weights.items():
        if weight.dim() > 1:
            inputs = (0,) if name.startswith("lstms") else tuple(range(1, weight.dim()))
            step = weight.abs().amax(dim=inputs, keepdim=True) / 127
            assert ((small.weights[name] - weight).abs() <= 0.501 * step).all()


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_what_was_rounded_once_is_not_rounded_again(tmp_path, fixtures, precision):
    native.save(open_model(fixtures / "tiny"), tmp_path / "once", precision)
    once = open_model(tmp_path / "once")
    native.save(once, tmp_path / "twice", once.precision)
    twice = open_model(tmp_path / "twice")
    assert all(torch.equal(weight, twice.weights[name]) for name, weight in once.weights.items())


def test_a_precision_that_nobody_knows_is_refused(tmp_path, fixtures):
    native.save(open_model(fixtures / "tiny"), tmp_path / "model")
    settings = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps({**settings, "precision": "int3"}))
    write_manifest(tmp_path / "model")
    with pytest.raises(FormatError, match="precision is 'int3'; expected one of fp32, fp16, int8"):
        open_model(tmp_path / "model")


def test_an_existing_folder_is_kept_unless_told(tmp_path):
    target = tmp_path / "model"
    target.mkdir()
    (target / "mine.txt").write_text("keep me")
    with pytest.raises(OutputError, match="exists already"):
        native.save(store(make_encoder()), target)
    assert (target / "mine.txt").read_text() == "keep me"
    with pytest.raises(OutputError, match="is not a polyseme model, so it is not overwritten"):
        native.save(store(make_encoder()), target, overwrite=True)
    assert (target / "mine.txt").read_text() == "keep me"
    (target / "mine.txt").unlink()
    for _ in range(2):
        native.save(store(make_encoder()), target, overwrite=True)
    assert sorted(file.name for file in target.iterdir()) == ["config.json", "manifest.json", "model.safetensors"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_failed_save_leaves_nothing(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(native, "save_file", full_disk)
    with pytest.raises(OutputError, match="cannot be written: No space left on device"):
        native.save(store(make_encoder()), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def folder(tmp_path):
    native.save(store(make_encoder()), tmp_path / "model")
    return tmp_path / "model"


def edit(folder, change, remanifest=True):
    """Change config.json and, unless it is to be found out, the manifest too."""
    settings = json.loads((folder / "config.json").read_text())
    change(settings)
    (folder / "config.json").write_text(json.dumps(settings))
    if remanifest:
        manifest = json.loads((folder / "manifest.json").read_text())
        data = (folder / "config.json").read_bytes()
        manifest["files"]["config.json"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        (folder / "manifest.json").write_text(json.dumps(manifest))


def test_a_damaged_file_is_found_by_its_hash(folder):
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(data)
    with pytest.raises(FormatError, match=r"model\.safetensors is damaged: its SHA-256"):
        open_model(folder)


def test_a_truncated_file_is_found_by_its_size(folder):
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-8])
    with pytest.raises(FormatError, match=r"should have \d+ bytes, not \d+; copy the model again"):
        open_model(folder)


def test_a_missing_file_is_named(folder):
    (folder / "config.json").unlink()
    with pytest.raises(FormatError, match=r"config\.json is in the manifest but not in the folder"):
        open_model(folder)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s: s["model"]["lstm"].update(dim=7), FormatError, "must be equal"),
        (lambda s: s["model"]["lstm"].update(cells=11), FormatError, "should have shape (6, 44), not (6, 40)"),
        (lambda s: s["model"]["lstm"].update(num_layers=3), FormatError, "'lstms.0.2.input' is missing"),
        (lambda s: s["model"]["lstm"].update(num_layers=1), FormatError, "unexpected tensor"),
        (lambda s: s["model"].update(dropout=1), FormatError, "has no setting 'dropout'"),
        (lambda s: s["model"]["lstm"].update(num_layers=10**7), FormatError, "num_layers must be 0 to 100"),
        (lambda s: s["model"]["lstm"].update(cell_clip=float("nan")), FormatError, "cell_clip must be above 0"),
        (lambda s: s["model"]["input"]["characters"].update(filters=[[1, 2, 3]]), FormatError, "must be 2 values"),
        (lambda s: s.update(version=99), FormatError, "should have format 'polyseme' version 1"),
        (lambda s: s.update(model=None), FormatError, "must be a table of settings"),
        (lambda s: s.update(characters={"unit": "runes"}), FormatError, "'bytes' or 'dictionary', not 'runes'"),
        (lambda s: s.update(characters={"unit": "bytes", "colour": 1}), FormatError, "cannot be read"),
        (lambda s: s.update(characters={"unit": "dictionary"}), FormatError, "characters.txt"),
        (lambda s: s.update(characters=["bytes"]), FormatError, "characters"),
        (lambda s: s.update(vocabulary=3), None, ""),
    ],
)
def test_wrong_settings_are_told(folder, change, error, message):
    edit(folder, change)
    if error is None:
        open_model(folder)
        return
    with pytest.raises(error) as caught:
        open_model(folder)
    assert message in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(tmp_path, value):
    encoder = make_encoder()
    with torch.no_grad():
        encoder.bilm.lstms[0][1].bias[3] = value
    native.save(store(encoder), tmp_path / "model")
    with pytest.raises(FormatError, match=r"'lstms.0.1.bias' holds values that are not finite"):
        open_model(tmp_path / "model")


def test_settings_that_are_not_json_are_told(folder):
    (folder / "manifest.json").write_bytes(b"\x89PNG\r\n")
    with pytest.raises(FormatError, match="is not JSON"):
        open_model(folder)


@pytest.mark.parametrize("files", [{}, {"config.json": 5, "model.safetensors": 5}, []])
def test_a_manifest_that_says_nothing_is_refused(folder, files):
    (folder / "manifest.json").write_text(json.dumps({"files": files}))
    with pytest.raises(FormatError, match=r"manifest|cannot be read as polyseme"):
        open_model(folder)


def test_a_folder_of_transformers_is_told_apart(tmp_path):
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(FormatError, match="not an ELMo model but a transformers folder"):
        native.load(tmp_path)
