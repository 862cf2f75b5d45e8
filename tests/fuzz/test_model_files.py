"""Model files, damaged: options, HDF5 names and shapes, safetensors headers, pickles, archives. The big bombs, too."""

import io
import json
import os
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch
from fuzzing import HARNESS, damaged, put, works_or_refuses
from hostile_models import CASES
from hostile_models.judge import faults
from hostile_models.native import model, raw, tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from many_langs_model import make_many_langs

from polyseme.errors import require
from polyseme.formats import open_model
from polyseme.formats.native import write_manifest
from polyseme.formats.pickles import read_pickled_tensors
from polyseme.formats.stored import read_weights

GOOD = Path(__file__).parents[1] / "fixtures" / "bilm-relu"
OPTIONS = (GOOD / "options.json").read_bytes()
SLOW = settings(HARNESS, max_examples=max(20, settings.default.max_examples // 4))
NUMBERS = st.sampled_from([0, -1, 1, 3, 2**31, 2**63, 10**30, 1e308, -0.5, float("nan"), float("inf")])
VALUES = NUMBERS | st.sampled_from([None, True, "", "relu", [], {}, [[1, 1]] * 300, [[0, 1]], "x" * 2000])
SHAPES = st.lists(st.sampled_from([0, 1, 2, 8, 16, 1 << 20]), max_size=3).map(tuple)
KINDS = st.sampled_from(["f2", "f4", ">f4", "f8", "i4", "S3", "c8"])
h5py = require("h5py", "hdf5")


@pytest.fixture(scope="module")
def bilm(folder: Path) -> Path:
    return Path(shutil.copytree(GOOD, folder / "bilm"))


def use(path: Path) -> None:
    """Open a model and build it: it works, or says in a sentence why not."""
    with works_or_refuses():
        open_model(path).build()


@HARNESS
@given(damaged(OPTIONS, tokens=(b"1e999", b"2000000000", b"null", b"[]", b"{}", b"true")))
def test_damaged_options(bilm, content):
    put(bilm / "options.json", content)
    use(bilm)


LSTM = st.sampled_from(["dim", "projection_dim", "n_layers", "cell_clip", "proj_clip"])
CHARACTERS = st.sampled_from(["filters", "n_highway", "activation", "max_characters_per_token"])


@HARNESS
@given(st.dictionaries(LSTM, VALUES), st.dictionaries(CHARACTERS, VALUES))
def test_options_with_other_values(bilm, lstm, characters):
    options = json.loads(OPTIONS)
    options["lstm"].update(lstm)
    options["char_cnn"].update(characters)
    put(bilm / "options.json", json.dumps(options).encode())
    use(bilm)


def _names() -> list[str]:
    names: list[str] = []
    with h5py.File(GOOD / "weights.hdf5") as file:
        file.visit(names.append)
    return names


@SLOW
@given(
    st.dictionaries(st.sampled_from(_names()), st.tuples(SHAPES, KINDS) | st.sampled_from(["none", "group", "link"]))
)
def test_hdf5_with_other_names_and_shapes(bilm, changes):
    put(bilm / "options.json", OPTIONS)
    shutil.copyfile(GOOD / "weights.hdf5", bilm / "weights.hdf5")
    with h5py.File(bilm / "weights.hdf5", "a") as file:
        for name, change in changes.items():
            _replace(file, name, change)
    use(bilm)


def _replace(file, name, change):
    parent = file.get(name.rpartition("/")[0]) if "/" in name else file
    if not isinstance(parent, h5py.Group) or file.get(name) is None:
        return
    del file[name]
    if change == "group":
        file.create_group(name)
    elif change == "link":
        file[name] = h5py.ExternalLink("/dev/zero", "/x")
    elif change != "none":
        shape, kind = change
        file.create_dataset(name, shape, kind, chunks=True if shape and all(shape) else None)


TENSORS = {"a": tensor(0, 16, [4]), "a.scale": tensor(16, 20, [1]), "b": tensor(20, 36, [2, 2])}
HEADER = raw(TENSORS, bytes(36))


@HARNESS
@given(damaged(HEADER, tokens=(b"I8", b"F64", b"BOOL", b"[0,0]", b"[1,1,1,1]", b"a.scale", b"18446744073709551615")))
def test_damaged_safetensors(folder, content):
    with works_or_refuses():
        read_weights(put(folder / "damaged.safetensors", content))


def _pickles(folder: Path) -> list[bytes]:
    tensors = {"a": torch.ones(3), "b": torch.zeros(2, 2).t()}
    for legacy in (False, True):
        torch.save(tensors, folder / f"{legacy}.pkl", _use_new_zipfile_serialization=not legacy)
    return [(folder / f"{legacy}.pkl").read_bytes() for legacy in (False, True)]


@HARNESS
@given(st.data())
def test_damaged_pickles(folder, data):
    tokens = (b"cos\nsystem\n", b"ctorch\nload\n", b"R", b"b", b"\x81", b"cbuiltins\nbytearray\n", b"q\x01", b"Q")
    content = data.draw(damaged(*_pickles(folder), tokens=tokens))
    with works_or_refuses():
        read_pickled_tensors(put(folder / "damaged.pkl", content))


def _archives() -> tuple[bytes, ...]:
    files = {file.name: file.read_bytes()[:2000] for file in GOOD.iterdir() if file.is_file()}
    made = []
    for mode in ("w", "w:gz", "w:xz"):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode, format=tarfile.PAX_FORMAT) as archive:
            for name, content in files.items():
                entry = tarfile.TarInfo(name if name != "options.json" else "a/" + "x" * 120 + "/options.json")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        made.append(out.getvalue())
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        made.append(out.getvalue())
    return tuple(made)


@HARNESS
@given(damaged(*_archives(), tokens=(b"../x", b"/x", b"77777777777\0", b"\x80" + bytes(11), b"PK\1\2", b"PK\5\6")))
def test_damaged_archives(folder, content):
    use(put(folder / "damaged.archive", content))


@SLOW
@given(data=st.data())
def test_damaged_settings_of_our_own(folder, data):
    place = folder / "model" if (folder / "model").exists() else model(folder)
    sound = place.with_name("sound.json")
    if not sound.exists():
        shutil.copyfile(place / "config.json", sound)
    tokens = (b"1e999", b"2000000000", b"null", b"[]", b"{}", b"true", b"false", b'""')
    put(place / "config.json", data.draw(damaged(sound.read_bytes(), tokens=tokens)))
    write_manifest(place)
    use(place)


@SLOW
@given(data=st.data())
def test_damaged_dictionaries_and_architectures(folder, data):
    place = folder / "many-langs"
    if not place.exists():
        make_many_langs(place)
    name = data.draw(st.sampled_from(["char.dic", "word.dic", "tiny.json", "config.json"]))
    sound = (place / name).read_bytes()
    put(place / name, data.draw(damaged(sound, tokens=(b"\t", b"\t-1", b"\t99999999999", b"1e999", b"null", b"[]"))))
    try:
        use(place)
    finally:
        put(place / name, sound)


@pytest.mark.skipif(os.environ.get("HYPOTHESIS_PROFILE") != "fuzz", reason="takes minutes; `make fuzz` runs it")
def test_the_largest_hostile_models(tmp_path):
    assert not faults([name for name, case in CASES.items() if case.slow], tmp_path)
