import io
import tarfile
import zipfile

import pytest

import polyseme
from polyseme.errors import ConfigError, FormatError
from polyseme.formats import open_model
from polyseme.formats.budget import VARIABLE


def zipped(folder, target, prefix=""):
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for file in folder.iterdir():
            out.write(file, prefix + file.name)
    return target


def tarred(folder, target):
    with tarfile.open(target, "w:gz") as out:
        out.add(folder, "model")
    return target


@pytest.mark.parametrize("name", ["tiny", "bilm-relu"])
def test_zips_and_tars_are_opened(tmp_path, fixtures, name):
    expected = polyseme.load(fixtures / name).fingerprint()
    for path in (
        zipped(fixtures / name, tmp_path / "flat.zip"),
        zipped(fixtures / name, tmp_path / "deep.zip", "a/b/"),
        tarred(fixtures / name, tmp_path / "model.tar.gz"),
    ):
        assert polyseme.load(path).fingerprint() == expected


def test_what_is_no_model_is_told_all_that_could_be(tmp_path):
    (tmp_path / "noise.bin").write_bytes(b"\xff\0\1 noise")
    for path in (tmp_path, tmp_path / "noise.bin"):
        with pytest.raises(FormatError, match=r"safetensors.*pkl.*hdf5.*transformers: a folder.*static vectors: "):
            polyseme.load(path)


def test_simple_elmos_zip_is_opened(tmp_path, fixtures):
    with zipfile.ZipFile(tmp_path / "12.zip", "w") as out:
        out.write(fixtures / "bilm-relu" / "options.json", "options.json")
        out.write(fixtures / "bilm-relu" / "weights.hdf5", "model.hdf5")
        out.writestr("vocab.txt", "whatever is here is not needed")
        out.writestr("meta.json", '{"language": "xx"}')
        out.writestr("README", "a model")
    assert polyseme.load(tmp_path / "12.zip").dim == 16


def test_a_fault_inside_an_archive_names_the_archive(tmp_path, fixtures):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as out:
        out.write(fixtures / "bilm-relu" / "options.json", "options.json")
        out.writestr("model.hdf5", b"no HDF5")
    with pytest.raises(FormatError, match=r"bad\.zip/model\.hdf5 is not a readable HDF5 file"):
        open_model(tmp_path / "bad.zip")


@pytest.mark.parametrize("name", ["../evil.json", "/etc/evil.json", "..\\evil.json"])
def test_an_archive_that_points_outside_is_not_opened(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as out:
        out.writestr(name, "{}")
    with pytest.raises(FormatError, match="points outside the archive"):
        open_model(tmp_path / "evil.zip")


def test_links_in_an_archive_are_refused(tmp_path):
    with tarfile.open(tmp_path / "evil.tar", "w") as out:
        link = tarfile.TarInfo("weights.hdf5")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        out.addfile(link)
    with pytest.raises(FormatError, match="is a link or a device"):
        open_model(tmp_path / "evil.tar")


def test_bombs_are_refused_before_they_go_off(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(1000 / 2**30))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("zeros", bytes(10_000))
    with pytest.raises(FormatError, match=f"would take 10,000 bytes .* may take 1,000 bytes; .* set {VARIABLE}"):
        open_model(tmp_path / "bomb.zip")
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr("polyseme.formats.archive.MAX_MEMBERS", 3)
    for kind in (tarfile.REGTYPE, tarfile.DIRTYPE):
        with tarfile.open(tmp_path / "many.tar", "w") as out:
            for number in range(5):
                entry = tarfile.TarInfo(str(number))
                entry.type = kind
                out.addfile(entry, io.BytesIO())
        with pytest.raises(FormatError, match="more than 3 files; unpack it by hand"):
            open_model(tmp_path / "many.tar")


def test_a_truncated_archive_is_told(tmp_path, fixtures):
    whole = tarred(fixtures / "bilm-relu", tmp_path / "model.tar.gz").read_bytes()
    (tmp_path / "half.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match=r"half\.tar\.gz"):
        open_model(tmp_path / "half.tar.gz")


def test_an_empty_or_strange_file_lists_the_formats_tried(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    for name in ("empty", "notes.txt", "picture.png"):
        with pytest.raises(FormatError) as caught:
            open_model(tmp_path / name)
        assert "polyseme: a folder with config.json" in str(caught.value)
        assert "bilm-tf / AllenNLP: options.json" in str(caught.value)
        assert "ELMoForManyLangs: a folder with encoder.pkl" in str(caught.value)


def test_a_path_that_is_not_there_is_told():
    with pytest.raises(FormatError, match="does not exist"):
        polyseme.load("no/such/model")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"word_budgt": 3}, "Did you mean 'word_budget'"),
        ({"batch_size": 3}, "It is called 'word_budget' here"),
        ({"device": "cuda:99"}, "device 'cuda:99' cannot be used here"),
        ({"device": "quantum"}, "there is no device 'quantum'; use cpu, cuda .* or mps"),
    ],
)
def test_wrong_settings_are_told(fixtures, settings, message):
    with pytest.raises(ConfigError, match=message):
        polyseme.load(fixtures / "tiny", **settings)


def test_where_no_model_ships_the_remedy_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr("polyseme.formats.SHIPPED_FOLDER", tmp_path)
    with pytest.raises(ConfigError, match="give the path of one"):
        polyseme.load()


def test_a_layer_takes_the_settings_of_both(fixtures):
    layer = polyseme.ElmoLayer.from_pretrained(fixtures / "tiny", device="cpu", boundaries=True, num_mixes=2, gamma=2.0)
    assert len(layer.mixes) == 2
    with pytest.raises(ConfigError, match="It is called 'trainable' here"):
        polyseme.ElmoLayer.from_pretrained(fixtures / "tiny", requires_grad=True)
