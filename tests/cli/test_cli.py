"""The command line, run as people run it: outputs, exit status, and what is left on the disk."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.main import get_command

import polyseme
from polyseme import cli
from polyseme.errors import require

FIXTURES = Path(__file__).parents[1] / "fixtures"
TINY = str(FIXTURES / "tiny")
TEXT = "He sat on the bank .\n\na/b ./.. /\nHe sat on the bank .\n" + "x" * 60 + " y\n"
SENTENCES = [line.split() for line in TEXT.splitlines()]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, "utf-8")
    return path


def subprocess_run(*arguments, **settings):
    command = [sys.executable, "-m", "polyseme", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)


def test_help_does_not_wait_for_torch():
    code = "import sys; sys.argv = ['polyseme', '--help']\n"
    code += "from polyseme.cli import app\n"
    code += "try: app()\nexcept SystemExit: pass\n"
    code += "heavy = {'torch', 'numpy', 'h5py', 'pyarrow', 'safetensors'} & set(sys.modules)\nassert not heavy, heavy"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert "embed" in outcome.stdout


def test_help_lists_every_command_in_one_group_and_cuts_no_line(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    listed = [name for group in cli.GROUPS.values() for name in map(command_name, group)]
    assert sorted(listed) == sorted(get_command(cli.app).commands)
    out = call("--help").out
    for title, group in cli.GROUPS.items():
        section = out.split(f"{title}:\n")[1].split("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines()] == [*map(command_name, group)]
    assert "..." not in out.split("Start here:")[1]
    assert max(map(len, out.splitlines())) <= 80


def command_name(command):
    return command.info.name if isinstance(command, typer.Typer) else command.__name__


@pytest.mark.parametrize("group", ["tag", "classify", "pairs", "static"])
def test_help_of_a_group_cuts_no_line(call, monkeypatch, group):
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in call(group, "--help").out.split("Commands:")[1]


def test_version(call):
    assert call("--version").out == f"polyseme {polyseme.__version__}\n"


@pytest.mark.parametrize("suffix", [".h5", ".parquet", ".npz"])
def test_embed_writes_what_the_library_gives(call, corpus, tmp_path, suffix):
    out = tmp_path / f"vectors{suffix}"
    outcome = call("embed", corpus, "-o", out, "--model", TINY)
    assert outcome.status == 0
    assert "words/s" in outcome.err
    assert "1 words were longer than the 48 bytes this model reads, and cropped" in outcome.err
    written = list(polyseme.read_vectors(out))
    for one, other in zip(written, polyseme.load(TINY).embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(one, other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", out.name]


def test_hdf5_is_as_allennlp_reads_it(call, corpus, tmp_path):
    call("embed", corpus, "-o", tmp_path / "v.hdf5", "--model", TINY, "--layers", "top")
    with require("h5py", "hdf5").File(tmp_path / "v.hdf5") as file:
        index = json.loads(file["sentence_to_index"][0])
        assert index["He sat on the bank ."] == "3"  # of two alike, the last
        assert index["a/b ./.. /"] == "2"
        assert file["1"].shape == (0, 32)
        assert file[index["a/b ./.. /"]].shape == (3, 32)


@pytest.mark.parametrize(
    ("options", "make"),
    [
        (["--layers", "1"], lambda v: v[1]),
        (["--layers", "average"], lambda v: v.mean(axis=0)),
        (["--layers", "0.2,0.3,0.5", "--gamma", "2"], lambda v: 2 * (0.2 * v[0] + 0.3 * v[1] + 0.5 * v[2])),
        (["--pool", "mean"], lambda v: v.mean(axis=0).mean(axis=0) if v.size else np.zeros(32)),
        (["--pool", "max", "--layers", "top"], lambda v: v[-1].max(axis=0) if v.size else np.zeros(32)),
        (["--dtype", "float16"], lambda v: v.astype(np.float16)),
        (["--word-budget", "7"], lambda v: v),
        (["--workers", "2"], lambda v: v),
    ],
)
def test_options_do_what_they_say(call, corpus, tmp_path, options, make):
    assert call("embed", corpus, "-o", tmp_path / "v.npz", "--model", TINY, *options).status == 0
    for one, other in zip(polyseme.read_vectors(tmp_path / "v.npz"), polyseme.load(TINY).embed(SENTENCES), strict=True):
        np.testing.assert_allclose(one, make(other), atol=1e-6)


def test_boundaries_and_their_words_are_kept(call, corpus, tmp_path):
    call("embed", corpus, "-o", tmp_path / "v.parquet", "--model", TINY, "--boundaries", "--layers", "0")
    table = require("pyarrow.parquet", "parquet").read_table(tmp_path / "v.parquet").to_pydict()
    assert table["word"][:8] == ["<S>", "He", "sat", "on", "the", "bank", ".", "</S>"]
    assert len(table["vector"][0]) == 32


def test_raw_text_and_compressed_text_and_standard_input(tmp_path):
    text = "She put her book in my bag. It wasn't heavy.\n"
    with gzip.open(tmp_path / "raw.txt.gz", "wt") as file:
        file.write(text)
    outputs = []
    for name, source, given in (("a", tmp_path / "raw.txt.gz", None), ("b", "-", text)):
        out = tmp_path / f"{name}.npz"
        outcome = subprocess_run("embed", source, "-o", out, "--model", TINY, "--raw", input=given)
        assert outcome.returncode == 0, outcome.stderr
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    assert [v.shape[1] for v in polyseme.read_vectors(tmp_path / "a.npz")] == [8, 5]


def test_documents_share_context_and_keep_line_numbers(call, tmp_path):
    text = "He sat .\nThe bank .\n\nThe river .\n"
    (tmp_path / "t.txt").write_text(text)
    assert call("embed", tmp_path / "t.txt", "-o", tmp_path / "v.npz", "--model", TINY, "--documents").status == 0
    vectors = list(polyseme.read_vectors(tmp_path / "v.npz"))
    assert [v.shape[1] for v in vectors] == [3, 3, 0, 3]
    first, second = polyseme.load(TINY).embed_documents(
        [[["He", "sat", "."], ["The", "bank", "."]], [["The", "river", "."]]]
    )
    for one, other in zip([*vectors[:2], vectors[3]], [*first, *second], strict=True):
        np.testing.assert_array_equal(one, other)


KILLED = """
import os, signal, sys
from polyseme.embedding.parts import Parts
import polyseme.embedding.parts as parts
parts.PART_SENTENCES = 7
append = Parts.append
signal_name = sys.argv.pop(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit its being ignored


def deadly(self, records, signal_name=signal_name):
    append(self, records)
    if self.done >= 21:
        os.kill(os.getpid(), getattr(signal, signal_name))
Parts.append = deadly
from polyseme.cli import main
main()
"""


@pytest.mark.parametrize(("name", "documents"), [("SIGKILL", False), ("SIGINT", True)])
def test_interrupted_work_continues_and_ends_with_the_same_contents(call, tmp_path, name, documents):
    lines = [f"line {number} of {number % 7} x" if number % 10 else "" for number in range(60)]
    (tmp_path / "t.txt").write_text("\n".join(lines))
    options = [tmp_path / "t.txt", "--model", TINY, "--word-budget", "8", *(["--documents"] if documents else [])]
    arguments = list(map(str, ["embed", *options, "-o", tmp_path / "v.h5"]))
    outcome = subprocess.run(
        [sys.executable, "-c", KILLED, name, *arguments], capture_output=True, text=True, check=False
    )
    assert not (tmp_path / "v.h5").exists()
    if name == "SIGINT":
        assert outcome.returncode == 130
        assert "sentences are kept; the same command with --resume continues" in outcome.stderr
        assert "Traceback" not in outcome.stderr
    refused = call(*arguments)
    assert refused.status == 2
    assert "--resume" in refused.err
    resumed = call(*arguments, "--resume")
    assert resumed.status == 0, resumed.err
    assert "sentences came from an earlier run" in resumed.err
    assert call("embed", *options, "-o", tmp_path / "w.h5").status == 0
    assert (tmp_path / "v.h5").read_bytes() == (tmp_path / "w.h5").read_bytes()
    assert not (tmp_path / "v.h5.parts").exists()


def test_resuming_on_a_changed_text_is_refused(call, tmp_path, monkeypatch):
    monkeypatch.setattr("polyseme.embedding.parts.PART_SENTENCES", 2)
    text = tmp_path / "t.txt"
    text.write_bytes(b"one a\ntwo b\nthree c\n\xff\n")
    out = ["-o", tmp_path / "v.npz", "--model", TINY, "--word-budget", "1"]
    outcome = call("embed", text, *out)
    assert outcome.status == 2
    assert "line 4 is not UTF-8" in outcome.err
    text.write_text("one a\nTWO b\nthree c\nfour\n")
    assert "sentence 1 has changed since" in call("embed", text, *out, "--resume").err
    text.write_text("one a\n")
    assert "the input has 1 sentences, but" in call("embed", text, *out, "--resume").err
    text.write_text("one a\ntwo b\nthree c\nfour\n")
    assert "give only one of them" in call("embed", text, *out, "--resume", "--overwrite").err
    assert "begun with other settings" in call("embed", text, *out, "--resume", "--layers", "top").err
    assert call("embed", text, *out, "--resume").status == 0
    assert len(list(polyseme.read_vectors(tmp_path / "v.npz"))) == 4
    assert "is already finished" in call("embed", text, *out, "--resume").out


EMBED = ["embed", "corpus.txt", "-o", "v.h5", "--model", TINY]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["embed", "missing.txt", "-o", "v.h5", "--model", TINY], "missing.txt: no such file"),
        (["embed", "corpus.txt", "-o", "v.txt", "--model", TINY], "expected a file that ends in .h5, .hdf5"),
        (["embed", "corpus.txt", "-o", "no/v.h5", "--model", TINY], "there is no folder no"),
        (["embed", "corpus.txt", "-o", "v.h5", "--model", "nowhere"], "nowhere does not exist"),
        (["embed", "corpus.txt", "-o", "v.h5", "--model", "corpus.txt"], "line 1 is not a word vector"),
        ([*EMBED, "--layers", "topp"], "Did you mean 'top'"),
        ([*EMBED, "--gamma", "2"], "--gamma is the scale of a mix"),
        ([*EMBED, "--layers", "1,1,1", "--gamma", "nan"], "finite"),
        ([*EMBED, "--layers", "1,1,1", "--gamma", "1e9", "--dtype", "float16"], "values beyond float16"),
        ([*EMBED, "--documents", "--raw"], "leave --raw out"),
        ([*EMBED, "--device", "meta"], "cannot be used here"),
        (["convert", TINY, "/", "--overwrite"], "so it is not overwritten"),
        (["convert", TINY, "/proc/x/w.hdf5"], "cannot be created"),
        ([*EMBED, "--layers", "7"], "there is no layer 7"),
        (
            ["embed", "corpus.txt", "-o", "v.h5", "--model", TINY, "--layers", "1,2"],
            "2 weights, but there are 3 layers",
        ),
        ([*EMBED, "--pool", "sum"], "pool must be mean or max"),
        ([*EMBED, "--pool", "max", "--layers", "all"], "pooling makes one vector of one layer"),
        (
            ["embed", "corpus.txt", "-o", "v.h5", "--model", TINY, "--pool", "max", "--boundaries"],
            "leave boundaries out",
        ),
        ([*EMBED, "--dtype", "int8"], "dtype must be float32"),
        ([*EMBED, "--workers", "0"], "workers must be a whole number"),
        ([*EMBED, "--device", "cuda:77"], "cannot be used here"),
        (
            ["embed", "corpus.txt", "-o", "v.h5", "--model", TINY, "--documents", "--workers", "2"],
            "leave --workers out",
        ),
        (["embed", "binary.txt", "-o", "v.h5", "--model", TINY], "a binary file"),
        (["embed", "latin.txt", "-o", "v.h5", "--model", TINY], "line 2 is not UTF-8"),
        (["embed", "broken.gz", "-o", "v.h5", "--model", TINY], "broken.gz"),
        (["embed", "corpus.txt", "-o", "there.h5", "--model", TINY], "there.h5 exists already"),
        (["convert", "nowhere", "out"], "nowhere does not exist"),
        (["convert", TINY, "there.h5"], "exists already"),
        (["convert", TINY, "out", "--precision", "int4"], "--precision must be fp32, fp16 or int8"),
        (["convert", TINY, "out.hdf5", "--precision", "fp16"], "holds fp32 only"),
        (["info", "corpus.txt"], "line 1 is not a word vector"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(call, corpus, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("binary.txt").write_bytes(b"\x89HDF\r\n\x1a\n\x00\xff\xfe")
    Path("latin.txt").write_bytes("fine\ncafé\n".encode("latin-1"))
    Path("broken.gz").write_bytes(gzip.compress(b"some text")[:-4])
    Path("there.h5").write_bytes(b"precious")
    before = sorted(Path().iterdir())
    outcome = call(*arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert message in outcome.err
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert sorted(Path().iterdir()) == before
    assert Path("there.h5").read_bytes() == b"precious"


def test_a_full_disk_keeps_what_is_finished(tmp_path, corpus):
    """The final file does not fit; the parts do."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000));"
    ignore = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    small = "import polyseme.embedding.parts as p; p.PART_SENTENCES = 20;"
    (tmp_path / "long.txt").write_text("a few words more\n" * 200)
    arguments = ["embed", str(tmp_path / "long.txt"), "-o", str(tmp_path / "v.h5"), "--model", TINY]
    code = f"{ignore}{limit}{small}from polyseme.cli import main; main()"
    outcome = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert "cannot be written: File too large" in outcome.stderr
    assert "--resume" in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert not (tmp_path / "v.h5").exists()
    assert subprocess_run(*arguments, "--resume").returncode == 0
    assert len(list(polyseme.read_vectors(tmp_path / "v.h5"))) == 200


def test_convert_goes_both_ways(call, tmp_path):
    source = FIXTURES / "bilm-relu"
    assert "written" in call("convert", source, tmp_path / "ours", "--precision", "int8").out
    assert call("convert", tmp_path / "ours", tmp_path / "theirs" / "elmo_weights.hdf5").status == 0
    assert sorted(path.name for path in (tmp_path / "theirs").iterdir()) == ["elmo_options.json", "elmo_weights.hdf5"]
    assert call("convert", source, tmp_path / "ours", "--overwrite").status == 0


def test_info_tells_what_a_model_is(call):
    assert "48,072" in call("info", TINY).out
    facts = json.loads(call("info", FIXTURES / "bilm-relu", "--json").out)
    assert facts["dimensions"] == 16
    assert facts["config"]["lstm"]["cell_clip"] == 0.3


def test_a_path_in_a_description_is_whole(call, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path))
    (tmp_path / "vectors.txt").write_text("a 1 2\nb 3 4\n")
    out = call("info", tmp_path / "vectors.txt").out
    kept = "".join(line.strip("│ ").split("│")[-1].strip() for line in out.splitlines())
    assert str(next((tmp_path / "vectors").iterdir())) in kept


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full, which Linux has")
def test_a_full_disk_behind_standard_output_is_one_line():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "polyseme", "info", TINY, "--json"]
        outcome = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert outcome.stderr.startswith("error: No space left on device")


def test_a_reader_that_leaves_is_no_fault():
    code = f"{sys.executable} -m polyseme info {TINY} | head -c 1"
    outcome = subprocess.run(["bash", "-c", f"set -o pipefail; {code}"], capture_output=True, text=True, check=False)
    assert "Traceback" not in outcome.stderr


def test_documents_end_with_their_file(call, tmp_path):
    (tmp_path / "a.txt").write_text("He sat .\n")
    (tmp_path / "b.txt").write_text("The bank .\n")
    out = tmp_path / "v.npz"
    call("embed", tmp_path / "a.txt", tmp_path / "b.txt", "-o", out, "--model", TINY, "--documents")
    alone = polyseme.load(TINY).embed([["He", "sat", "."], ["The", "bank", "."]])
    for one, other in zip(polyseme.read_vectors(out), alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_output_inside_the_input_folder_is_not_read(call, tmp_path):
    (tmp_path / "a.txt").write_text("He sat .\n")
    assert call("embed", tmp_path, "-o", tmp_path / "v.npz", "--model", TINY).status == 0
    assert len(list(polyseme.read_vectors(tmp_path / "v.npz"))) == 1


def test_brackets_in_names_are_shown_as_they_are(call, tmp_path):
    call("convert", TINY, tmp_path / "m[bold]odel")
    assert "m[bold]odel" in call("demo", "--model", tmp_path / "m[bold]odel").out
    assert "m[bold]odel" in call("info", tmp_path / "m[bold]odel").out.replace("\n", "")
