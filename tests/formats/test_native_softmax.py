"""The head of a language model in a model's folder, and what else goes with a model."""

import hashlib
import json
import shutil

import pytest
import torch
from language_models import WORDS, make_language_model, save_language_model, store_softmax
from tiny_models import make_encoder

from polyseme.errors import ConfigError, FormatError, OutputError
from polyseme.formats import StoredModel, native, open_extras, open_model, open_softmax
from polyseme.text.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    model = make_language_model()
    return save_language_model(model, tmp_path_factory.mktemp("made") / "model", extras={"training.json": b"{}\n"})


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "model")


def stored(encoder) -> StoredModel:
    return StoredModel(encoder.bilm.config, encoder.bilm.state_dict(), encoder.words, "made for a test")


def manifest_again(folder):
    """As if whoever changed a file had hidden it."""
    files = {
        file.name: {"bytes": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for file in folder.iterdir()
        if file.name != "manifest.json"
    }
    (folder / "manifest.json").write_text(json.dumps({"files": files}))


def edit(folder, change):
    settings = json.loads((folder / "config.json").read_text())
    change(settings)
    (folder / "config.json").write_text(json.dumps(settings))
    manifest_again(folder)


@pytest.mark.parametrize("cutoffs", [(), (6,)])
def test_a_saved_head_has_the_same_bits(tmp_path, cutoffs):
    model = make_language_model(cutoffs)
    loaded = open_softmax(save_language_model(model, tmp_path / "model"))
    assert loaded.config == model.softmax.config
    assert list(loaded.vocabulary) == list(WORDS)
    again = loaded.build()
    assert type(again) is type(model.softmax)
    for name, weight in model.softmax.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight)


@pytest.mark.parametrize(("precision", "bound"), [("fp16", 1e-3), ("int8", 0.501 / 127)])
def test_a_smaller_head_is_rounded_word_by_word(tmp_path, precision, bound):
    model = make_language_model()
    with torch.no_grad():
        model.softmax.weight[4] *= 1000  # must not cost the other words their digits
    found = open_softmax(save_language_model(model, tmp_path / "model", precision=precision)).weights
    weight = model.softmax.weight.detach()
    assert found["weight"].dtype == torch.float32
    assert ((found["weight"] - weight).abs() <= bound * weight.abs().amax(dim=1, keepdim=True)).all()


def test_opening_a_model_does_not_read_its_head(folder):
    (folder / "softmax.safetensors").write_bytes(b"damaged")
    (folder / "vocabulary.txt").write_bytes(b"damaged")
    (folder / "training.json").unlink()
    model = open_model(folder)
    assert model.softmax.num_words == len(WORDS)
    assert model.words.vocabulary is None


def test_a_model_without_a_head_says_so(tmp_path, fixtures):
    assert open_model(fixtures / "tiny").softmax is None
    for path in (fixtures / "tiny", fixtures / "bilm-relu" / "weights.hdf5"):
        with pytest.raises(FormatError, match=r"has no softmax.*Published ELMo files have none"):
            open_softmax(path)


def test_a_head_comes_out_of_an_archive(folder, tmp_path):
    path = shutil.make_archive(str(tmp_path / "packed"), "zip", folder.parent, folder.name)
    assert open_softmax(path).config.num_words == len(WORDS)
    assert open_extras(path) == {"training.json": b"{}\n"}
    (folder / "softmax.safetensors").unlink()
    path = shutil.make_archive(str(tmp_path / "broken"), "zip", folder.parent, folder.name)
    with pytest.raises(FormatError, match=r"broken\.zip/model: softmax\.safetensors is in the manifest but not"):
        open_softmax(path)


def test_a_damaged_head_is_found_by_its_hash(folder):
    data = bytearray((folder / "softmax.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "softmax.safetensors").write_bytes(data)
    with pytest.raises(FormatError, match=r"softmax\.safetensors is damaged: its SHA-256"):
        open_softmax(folder)


def test_a_truncated_head_is_found_by_its_size(folder):
    data = (folder / "softmax.safetensors").read_bytes()
    (folder / "softmax.safetensors").write_bytes(data[:-8])
    with pytest.raises(FormatError, match=r"softmax\.safetensors should have \d+ bytes, not \d+"):
        open_softmax(folder)
    manifest_again(folder)
    with pytest.raises(FormatError, match=r"softmax\.safetensors cannot be read"):
        open_softmax(folder)


@pytest.mark.parametrize("name", ["softmax.safetensors", "vocabulary.txt"])
def test_a_missing_part_of_a_head_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(FormatError, match=f"{name} is in the manifest but not in the folder"):
        open_softmax(folder)
    manifest_again(folder)
    with pytest.raises(FormatError, match=rf"manifest\.json should list {name}"):
        open_softmax(folder)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s: s["softmax"].update(num_words=12), FormatError, r"'weight' should have shape \(12, 6\)"),
        (lambda s: s["softmax"].update(num_words=10**9), FormatError, "should have shape"),
        (lambda s: s["softmax"].update(num_words=10**12), FormatError, "must be 3 to 2,147,483,648"),
        (lambda s: s["softmax"].update(dim=7), FormatError, "takes 7 dimensions, but the model gives 6"),
        (lambda s: s["softmax"].update(cutoffs=[5]), FormatError, "unexpected tensor 'bias'"),
        (lambda s: s["softmax"].update(cutoffs=["a"]), FormatError, "cutoffs must be int"),
        (lambda s: s["softmax"].update(words=1), FormatError, "has no setting 'words'. Did you mean 'num_words'"),
        (lambda s: s.update(softmax=5), FormatError, "softmax must be a table of settings"),
        (lambda s: s.update(softmax=None), FormatError, "has no softmax"),
        (lambda s: s.update(version=2), FormatError, "should have format 'polyseme' version 1"),
        (lambda s: s["vocabulary"].update(unk="<unk>"), FormatError, "the words lack '<unk>'"),
        (lambda s: s.update(vocabulary=3), FormatError, "cannot be read as polyseme"),
    ],
)
def test_wrong_settings_of_a_head_are_told(folder, change, error, message):
    edit(folder, change)
    with pytest.raises(error, match=message):
        open_softmax(folder)


def test_a_vocabulary_of_another_length_is_told(folder):
    with (folder / "vocabulary.txt").open("a") as file:
        file.write("extra\n")
    manifest_again(folder)
    with pytest.raises(FormatError, match="has 12 words, but the softmax is over 11"):
        open_softmax(folder)


def test_a_head_that_is_no_number_is_refused(tmp_path):
    model = make_language_model()
    with torch.no_grad():
        model.softmax.bias[3] = float("nan")
    with pytest.raises(FormatError, match="'bias' holds values that are not finite"):
        open_softmax(save_language_model(model, tmp_path / "model"))


def test_a_head_that_does_not_fit_is_not_saved(tmp_path, fixtures):
    head = store_softmax(make_language_model())
    numbers = make_encoder(words=[*WORDS[:3], "other"])
    with pytest.raises(ConfigError, match="need the same vocabulary"):
        native.save(stored(numbers), tmp_path / "model", softmax=head)
    fewer = type(head)(head.config, head.weights, Vocabulary(WORDS[:-1]))
    with pytest.raises(ConfigError, match="a softmax over 11 words came with 10"):
        native.save(stored(make_encoder()), tmp_path / "model", softmax=fewer)
    with pytest.raises(ConfigError, match="takes 6 dimensions, but the model gives 16"):
        native.save(open_model(fixtures / "tiny"), tmp_path / "model", softmax=head)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_reads_numbers_shares_its_list_with_the_head(tmp_path):
    model = make_language_model(words=list(WORDS), characters=None)
    folder = save_language_model(model, tmp_path / "model")
    assert list(open_model(folder).words.vocabulary) == list(open_softmax(folder).vocabulary) == list(WORDS)


def test_further_files_go_with_a_model(folder, tmp_path):
    assert open_extras(folder) == {"training.json": b"{}\n"}
    model = make_language_model()
    save_language_model(model, folder, overwrite=True, extras={"training.png": b"\x89PNG"})
    assert open_extras(folder) == {"training.png": b"\x89PNG"}
    assert not (folder / "training.json").exists()
    (folder / "mine.txt").write_text("keep me")
    with pytest.raises(OutputError, match="is not a polyseme model, so it is not overwritten"):
        save_language_model(model, folder, overwrite=True)
    assert (folder / "mine.txt").read_text() == "keep me"
    (folder / "training.png").write_bytes(b"\x89PNg")
    with pytest.raises(FormatError, match=r"training\.png is damaged"):
        open_extras(folder)


@pytest.mark.parametrize(
    "name", ["config.json", "manifest.json", "softmax.safetensors", "../up", ".hidden", "a\\b", ""]
)
def test_a_further_file_needs_a_plain_name_of_its_own(tmp_path, name):
    with pytest.raises(OutputError, match="is not a name for an extra file of a model"):
        native.save(stored(make_encoder()), tmp_path / "model", extras={name: b""})
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_that_points_outside_is_not_followed(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["../secret"] = {"bytes": 0, "sha256": ""}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FormatError, match=r"lists '\.\./secret', which is not a file of the folder"):
        open_extras(folder)


def test_other_formats_have_no_further_files(fixtures):
    assert open_extras(fixtures / "bilm-relu") == {}


def test_a_full_disk_leaves_the_old_model(folder, monkeypatch):
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    def full_disk(weights, file, *_):
        if file.name == "softmax.safetensors":
            raise OSError(28, "No space left on device")
        file.write_bytes(b"")

    monkeypatch.setattr(native, "save_file", full_disk)
    with pytest.raises(OutputError, match="No space left on device"):
        save_language_model(make_language_model(), folder, overwrite=True)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
