import gzip
import json
import shutil

import numpy as np
import pytest
from tiny_models import make_encoder

import polyseme
from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.errors import ConfigError, FormatError, OutputError, require
from polyseme.formats import StoredModel, bilm_hdf5, native, open_model

h5py = require("h5py", "hdf5")
SENTENCES = [["the", "bank", "of"], ["Straße", "pneumonoultramicroscopic"], []]
WORDS = ["<S>", "</S>", "<UNK>", "the", "bank"]


def store(encoder: ElmoEncoder) -> StoredModel:
    return StoredModel(encoder.bilm.config, encoder.bilm.state_dict(), encoder.words, "made for a test")


def datasets(path):
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, node: found.update({name: node[...]}) if isinstance(node, h5py.Dataset) else None)
    return found


@pytest.fixture
def folder(tmp_path, fixtures):
    return shutil.copytree(fixtures / "bilm-relu", tmp_path / "model")


@pytest.mark.parametrize("name", ["bilm-relu", "bilm-tanh"])
def test_there_and_back_again_is_bit_equal(tmp_path, fixtures, name):
    native.save(open_model(fixtures / name), tmp_path / "ours")
    bilm_hdf5.save(open_model(tmp_path / "ours"), tmp_path / "weights.hdf5")
    before, after = datasets(fixtures / name / "weights.hdf5"), datasets(tmp_path / "weights.hdf5")
    assert before.keys() == after.keys()
    for dataset, array in before.items():
        assert array.dtype == after[dataset].dtype
        np.testing.assert_array_equal(array, after[dataset])
    old = json.loads((fixtures / name / "options.json").read_text())
    assert json.loads((tmp_path / "options.json").read_text()) == old


@pytest.mark.parametrize("name", ["", "options.json", "weights.hdf5"])
def test_any_of_its_files_opens_it(folder, name):
    assert polyseme.load(folder / name).dim == 16


def test_pairs_are_found_by_their_names(folder):
    for stem in ("small", "large"):
        for part in ("weights.hdf5", "options.json"):
            shutil.copy(folder / part, folder / f"{stem}_{part}")
    (folder / "weights.hdf5").unlink()
    (folder / "options.json").unlink()
    assert "small_weights" in open_model(folder / "small_options.json").format
    assert "large_weights" in open_model(folder / "large_weights.hdf5").format
    with pytest.raises(FormatError, match="several files hold LSTM weights"):
        open_model(folder)


def remake(folder, **changes):
    """Write a model of another shape in their layout."""
    encoder = make_encoder(**changes)
    shutil.rmtree(folder)
    bilm_hdf5.save(store(encoder), folder / "weights.hdf5")
    return encoder


@pytest.mark.parametrize(
    "changes",
    [
        {"num_layers": 3},
        {"num_layers": 1},
        {"cells": 6, "projected": False},
        {"residual": False, "cell_clip": None, "output_clip": 0.5},
        {"words": WORDS, "characters": None},
        {"directions": ("forward",)},
    ],
)
def test_other_shapes_survive(folder, changes):
    encoder = remake(folder, **changes)
    again = polyseme.load(folder)
    assert again.bilm.config == encoder.bilm.config
    for one, other in zip(encoder.embed(SENTENCES), again.embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(one[..., :1, :], other[..., :1, :])


def test_n_equal_to_p_needs_no_projection(folder):
    from polyseme.model import BiLM, BiLMConfig, CharCnnConfig, InputConfig, LstmConfig

    config = BiLMConfig(
        InputConfig(8, CharCnnConfig(filters=((2, 8),)), projected=False), LstmConfig(8, 8, projected=False)
    )
    model = StoredModel(config, BiLM(config).state_dict(), make_encoder().words, "test")
    bilm_hdf5.save(model, folder / "n" / "weights.hdf5")
    assert "CNN_proj" not in h5py.File(folder / "n" / "weights.hdf5")
    assert open_model(folder / "n").config == config


def test_one_layer_and_one_direction_in_tensorflows_own_names(folder):
    """bilm-tf's dump of such models lacks levels of the usual path."""
    encoder = remake(folder, num_layers=1, directions=("forward",))
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        cell = file["RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"]
        file["rnn/LSTMCell/kernel"] = cell["W_0"][...]
        file["rnn/LSTMCell/bias"] = cell["B"][...]
        file["rnn/LSTMCell/projection/kernel"] = cell["W_P_0"][...]
        del file["RNN_0"]
    for one, other in zip(encoder.embed(SENTENCES), polyseme.load(folder).embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(one[:, :1], other[:, :1])


@pytest.mark.parametrize("n_characters", [261, 262])
def test_261_or_262_makes_no_difference(folder, n_characters):
    expected = list(polyseme.load(folder).embed(SENTENCES))
    options = json.loads((folder / "options.json").read_text())
    options["char_cnn"]["n_characters"] = n_characters
    (folder / "options.json").write_text(json.dumps(options))
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        table = file["char_embed"][...]
        if n_characters == 262:  # some dumps have a row for padding
            del file["char_embed"]
            file["char_embed"] = np.concatenate([np.zeros((1, 4), "f4"), table])
    for one, other in zip(polyseme.load(folder).embed(SENTENCES), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_table_of_word_vectors_replaces_the_characters(folder):
    whole = polyseme.load(folder)
    table = whole.embed_words(WORDS[3:])[:, :8]
    special = np.ones((3, 8), "f4")
    with h5py.File(folder / "vocab_embedding.hdf5", "w") as file:
        file["embedding"] = np.concatenate([special, table])
    with gzip.open(folder / "vocab.txt.gz", "wt") as file:
        file.write("\n".join(WORDS) + "\n")
    by_number = polyseme.load(folder / "vocab_embedding.hdf5")
    vectors = next(by_number.embed([["the", "unseen", "bank"]]))
    assert by_number.num_layers == 3
    np.testing.assert_allclose(vectors[0, [0, 2]], whole.embed_words(["the", "bank"]), atol=1e-6)
    np.testing.assert_array_equal(vectors[0, 1, :8], special[2])
    assert polyseme.load(folder).bilm.config.input.characters is not None


def test_a_table_alone_is_a_model_of_one_layer(tmp_path):
    table = np.arange(15, dtype="f4").reshape(5, 3)
    with h5py.File(tmp_path / "embedding.hdf5", "w") as file:
        file["embedding"] = table
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    encoder = polyseme.load(tmp_path / "embedding.hdf5")
    (vectors,) = encoder.embed([["bank", "the", "unseen"]])
    np.testing.assert_array_equal(vectors, table[[4, 3, 2]][None])


def test_a_model_by_numbers_needs_its_words(tmp_path):
    with h5py.File(tmp_path / "embedding.hdf5", "w") as file:
        file["embedding"] = np.zeros((5, 3), "f4")
    with pytest.raises(FormatError, match=r"needs its vocabulary, vocab\.txt"):
        polyseme.load(tmp_path / "embedding.hdf5")
    (tmp_path / "words").write_text("<S>\n</S>\n<UNK>\n")
    with pytest.raises(FormatError, match="has 3 words, but the table of vectors has 5 rows"):
        polyseme.load(tmp_path / "embedding.hdf5", vocabulary=tmp_path / "words")


CELL = "RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell"


def replaced(name, array):
    def change(file):
        del file[name]
        file[name] = array

    return change


def renamed(old, new):
    return lambda file: file.move(old, new)


def linked(file):
    del file["CNN_proj/W_proj"]
    file["CNN_proj/W_proj"] = h5py.ExternalLink("elsewhere.hdf5", "/secret")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced(f"{CELL}/B", np.zeros(47, "f4")), f"'{CELL}/B' should have shape (48,) by the options, not (47,)"),
        (replaced("char_embed", np.zeros((260, 4), "f4")), "'char_embed' should have shape (261, 4)"),
        (replaced(f"{CELL}/W_0", np.zeros((16, 48), "i4")), "should hold floating-point numbers, not int32"),
        (replaced("CNN_proj/b_proj", np.full(8, np.nan, "f4")), "'CNN_proj/b_proj' holds values that are not finite"),
        (renamed("CNN/W_cnn_1", "CNN/W_cnn_9"), "dataset 'CNN/W_cnn_1' is missing. Did you mean 'CNN/"),
        (renamed(f"{CELL}/W_0", "x"), f"dataset '{CELL}/W_0' is missing"),
        (linked, "is a link"),
    ],
)
def test_wrong_datasets_are_named_with_both_shapes(folder, change, message):
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        change(file)
    with pytest.raises(FormatError) as caught:
        polyseme.load(folder)
    assert message in str(caught.value)
    assert "weights.hdf5" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: o["lstm"].pop("dim"), "lstm: 'dim' is missing"),
        (lambda o: o["lstm"].update(dim="12"), "'dim' should be int, not '12'"),
        (lambda o: o["char_cnn"].pop("filters"), "char_cnn: 'filters' is missing"),
        (lambda o: o["char_cnn"].update(filters=[3]), "char_cnn"),
        (lambda o: o["char_cnn"].update(activation="gelu"), "activation must be 'relu' or 'tanh'"),
        (lambda o: o["char_cnn"].update(max_characters_per_token=3), "the widest filter reads 5"),
        (lambda o: o.pop("char_cnn"), "neither LSTM weights nor a table 'embedding'"),
        (lambda o: o["lstm"].update(n_layers=3), "Cell2/LSTMCell/W_0' is missing"),
        (lambda o: o["lstm"].update(n_layers="two"), "n_layers"),
    ],
)
def test_wrong_options_are_told(folder, change, message):
    options = json.loads((folder / "options.json").read_text())
    change(options)
    (folder / "options.json").write_text(json.dumps(options))
    with pytest.raises(polyseme.PolysemeError) as caught:
        polyseme.load(folder)
    assert message in str(caught.value)


def test_a_truncated_file_is_told(folder):
    data = (folder / "weights.hdf5").read_bytes()
    (folder / "weights.hdf5").write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match="is not a readable HDF5 file"):
        polyseme.load(folder)


def test_weights_without_options_and_options_without_weights(folder):
    (folder / "options.json").rename(folder.parent / "options.json")
    with pytest.raises(FormatError, match="needs its options beside it"):
        polyseme.load(folder / "weights.hdf5")
    with pytest.raises(FormatError, match="no HDF5 file with LSTM weights"):
        polyseme.load(folder.parent / "options.json")


def test_what_their_format_cannot_hold_is_not_written(tmp_path):
    for encoder in (make_encoder(directions=("backward",)), make_encoder(forget_bias=0.0)):
        with pytest.raises(ConfigError):
            bilm_hdf5.save(store(encoder), tmp_path / "weights.hdf5")
    bilm_hdf5.save(store(make_encoder()), tmp_path / "weights.hdf5")
    with pytest.raises(OutputError, match="exists already"):
        bilm_hdf5.save(store(make_encoder()), tmp_path / "weights.hdf5")
