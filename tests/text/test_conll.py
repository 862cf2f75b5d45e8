"""Labelled text in columns."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from polyseme.errors import ConfigError, FormatError, InputError, PolysemeError
from polyseme.text.conll import LabelSpec, label_name, read_conll, read_labelled

SHARED = Path(__file__).parents[3] / "shared" / "eval"
CONLLU = """\
# sent_id = 1
# text = They don't .
1\tThey\tthey\tPRON\tPRP\tCase=Nom|Number=Plur\t2\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\tTense=Pres|VerbForm=Fin\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tlike\tlike\tVERB\tVB\t_\t_\t_\t2:conj\t_
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

# a comment of any kind
1\tNew York\tNew York\tPROPN\t_\tNumber=Sing\t0\troot\t_\t_
"""
PLAIN = """\
-DOCSTART- -X- O

# # I-NP
1.8 CD I-NP
  billion   CD I-NP

10\u00a0000 CD B-NP
"""


def write(path: Path, text: str) -> Path:
    compress = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(compress(text.encode()))
    return path


@pytest.fixture
def conllu(tmp_path):
    return write(tmp_path / "a.conllu", CONLLU)


@pytest.fixture
def plain(tmp_path):
    return write(tmp_path / "a.conll", PLAIN)


def labels(path, **wanted):
    return [label for sentence in read_labelled(path, LabelSpec(**wanted)) for label in sentence.labels]


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_conllu_skips_ranges_empty_nodes_and_comments(tmp_path, suffix):
    first, second = read_labelled(write(tmp_path / f"a.conllu{suffix}", CONLLU))
    assert first == (["They", "do", "n't", "."], ["PRON", "AUX", "PART", "PUNCT"])
    assert second == (["New York"], ["PROPN"])


def test_columns_by_name_and_by_number_are_the_same(conllu):
    assert labels(conllu, column="deprel") == labels(conllu, column=8) == labels(conllu, column="8")
    assert labels(conllu, column="UPOS") == labels(conllu)


def test_an_underscore_is_no_label_in_conllu(conllu):
    assert labels(conllu, column="xpos")[-1] is None


def test_features_and_words_without_them(conllu):
    assert labels(conllu, feature="Number") == ["Plur", None, None, None, "Sing"]


def test_words_may_stand_in_another_column(conllu):
    assert next(read_labelled(conllu, LabelSpec(words=3))).words[2] == "not"


def test_plain_columns_have_no_comments_and_no_documents(plain):
    first, second = read_labelled(plain)
    assert first == (["#", "1.8", "billion"], ["I-NP"] * 3)
    assert second == (["10\u00a0000"], ["B-NP"])


def test_a_file_that_begins_with_hashes_is_told_by_its_first_other_line(tmp_path):
    rows = "#\tO\n#tag\tO\nword\tB\n"
    assert next(read_labelled(write(tmp_path / "a", rows))).words == ["#", "#tag", "word"]
    assert next(read_labelled(write(tmp_path / "b", "#\tO\n"))).words == ["#"]
    assert next(read_labelled(write(tmp_path / "c", "# made by hand\n\n" + CONLLU))).words[0] == "They"


def test_lines_that_hold_only_blanks_end_a_sentence(tmp_path):
    assert len(list(read_conll(write(tmp_path / "a", "a\tO\n\t\nb\tO\r\n \t\r\nc\tO")))) == 3


def test_a_folder_is_read_file_by_file(tmp_path, conllu):
    write(tmp_path / "b.conllu", CONLLU)
    assert len(list(read_labelled(tmp_path))) == 4


def test_names_that_people_would_use(conllu, plain):
    assert label_name(conllu, LabelSpec()) == "upos"
    assert label_name(conllu, LabelSpec(column=5)) == "xpos"
    assert label_name(plain, LabelSpec()) == "column 3"
    assert label_name(conllu, LabelSpec(feature="Tense")) == "Tense"


@pytest.mark.parametrize(
    ("text", "wanted", "error", "message"),
    [
        ("a\tb\nc\n", {}, FormatError, "line 2: has 1 columns, but the file's first row has 2"),
        ("a b\n# id 7 x\n", {}, FormatError, "begins a comment in CoNLL-U only"),
        (CONLLU + "2\tshort\n", {}, FormatError, "line 12: has 2 columns, but the file's first row has 10"),
        (CONLLU.replace("4\t.", "x\t."), {}, FormatError, "begins with 'x' where CoNLL-U has a word's number"),
        ("", {}, InputError, "holds no words"),
        ("\n\n", {}, InputError, "holds no words"),
        (CONLLU, {"feature": "tense"}, InputError, "It has Number, .*Did you mean 'Tense'"),
        (PLAIN, {"feature": "Tense"}, InputError, r"only CoNLL-U \(ten columns, separated by tabs\) has features"),
        (CONLLU, {"column": "uppos"}, InputError, "no column 'uppos'.*Did you mean 'upos'"),
        (PLAIN, {"column": "upos"}, InputError, "give a number from 1 to 3"),
        (PLAIN, {"column": 4}, InputError, "there is no column 4; the file has columns 1 to 3"),
        (PLAIN, {"column": 0}, InputError, "there is no column 0"),
        (CONLLU, {"words": 11}, InputError, "there is no column 11"),
        (CONLLU, {"column": "misc"}, InputError, "no word has a label in column misc"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(tmp_path, text, wanted, error, message):
    path = write(tmp_path / "a", text)
    with pytest.raises(PolysemeError, match=message) as refused:
        labels(path, **wanted)
    assert isinstance(refused.value, error)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_column_and_a_feature_are_too_much():
    with pytest.raises(ConfigError, match="a column or a feature"):
        LabelSpec("upos", "Tense")


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the published sets, in ../shared/eval")
def test_published_files_are_read_whole():
    counts = {
        "pos-ud-ewt/en_ewt-ud-dev.conllu.xz": (2_001, 17),
        "chunk-conll2000/test.txt": (2_012, 19),
        "ner-wnut17/emerging.test.annotated": (1_287, 13),
        "ner-wnut17/wnut17train.conll": (3_394, 13),
    }
    for name, (sentences, distinct) in counts.items():
        found = list(read_labelled(SHARED / name))
        assert len(found) == sentences
        assert len({label for sentence in found for label in sentence.labels}) == distinct
