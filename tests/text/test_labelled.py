"""Labelled sentences and pairs out of files."""

import gzip

import pytest

from polyseme.errors import ConfigError, FormatError, InputError
from polyseme.text.labelled import ColumnSpec, LabelledText, read_labelled_text

SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    "1\tA man is walking\tNobody walks\t3.5\tCONTRADICTION\n"
    "2\tA dog runs\tAn animal runs\t4.5\tENTAILMENT\n"
)


@pytest.fixture
def read(tmp_path):
    def run(content, /, *arguments, **settings):
        (tmp_path / "file").write_text(content, encoding="utf-8")
        return list(read_labelled_text(tmp_path / "file", ColumnSpec(*arguments, **settings)))

    return run


def test_the_label_stands_first(read):
    found = read("3 a gorgeous , witty movie .\n\n0 no\n4\n")
    assert found[0] == LabelledText((["a", "gorgeous", ",", "witty", "movie", "."],), "3")
    assert [example.label for example in found] == ["3", "0", "4"]
    assert found[2].sentences == ([],)


def test_the_coarse_part_of_a_label(read):
    text = "DESC:manner How did it end ?\nNUM When ?\n"
    assert [example.label for example in read(text)] == ["DESC:manner", "NUM"]
    assert [example.label for example in read(text, coarse=True)] == ["DESC", "NUM"]


def test_columns_without_a_header_are_label_and_sentence(read):
    assert read("good\ta fine film\nbad\ta dull one\n")[1] == LabelledText((["a", "dull", "one"],), "bad")


def test_columns_go_by_number_or_by_name(read):
    text = "Id\tPhrase\tSentiment\n1\ta fine film\t4\n"
    expected = [LabelledText((["a", "fine", "film"],), "4")]
    assert read(text, text=("Phrase",), label="Sentiment") == expected
    assert read(text, text=("phrase",), label=3) == expected
    assert read(text, text=("2",), label="3", header=True) == expected
    assert [example.label for example in read(text, text=(2,), label=3)] == ["Sentiment", "4"]


def test_usual_headers_are_known(read):
    expected = [LabelledText((["fine"],), "1")]
    assert read("sentence\tlabel\nfine\t1\n") == expected
    assert read("label\ttext\n1\tfine\n") == expected
    assert read("label\ttext\n1\tfine\n", header=False)[0] == LabelledText((["text"],), "label")


def test_sick_is_read_as_published(read):
    (first, _) = read("\ufeff" + SICK, 2)
    assert first == LabelledText((["A", "man", "is", "walking"], ["Nobody", "walks"]), "CONTRADICTION")
    assert [example.label for example in read(SICK, 2, kind="number")] == [3.5, 4.5]
    assert [example.label for example in read(SICK, 2, kind="none")] == [None, None]
    assert read(SICK, 2, ("sentence_B", "sentence_A"))[0].sentences[0] == ["Nobody", "walks"]


def test_pairs_without_a_header_are_two_sentences_and_a_label(read):
    assert read("a b\tc\tyes\n", 2) == [LabelledText((["a", "b"], ["c"]), "yes")]
    assert read("a b\tc\t2.5\n", 2, kind="number")[0].label == 2.5
    assert read("a b\tc\n", 2, kind="none") == [LabelledText((["a", "b"], ["c"]), None)]
    assert read("\tc\tyes\n", 2)[0].sentences == ([], ["c"])


def test_raw_text_is_cut_into_words(read):
    (found,) = read("good It's fine. Isn't it?\n", raw=True)
    assert found.sentences == (["It", "'s", "fine", ".", "Is", "n't", "it", "?"],)


def test_files_may_be_compressed_and_many(tmp_path):
    for name in ("a", "b"):
        with gzip.open(tmp_path / f"{name}.gz", "wt") as file:
            file.write(f"{name} words here\r\n")
    assert [example.label for example in read_labelled_text(tmp_path)] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "settings", "error", "message"),
    [
        ("", {}, InputError, "holds no examples; expected one per line, with a label and a sentence"),
        ("\n \n", {"sentences": 2}, InputError, "two sentences and a label separated by tabs"),
        ("a\tb\na\n", {}, FormatError, "line 2: has 1 columns, but the file's first line has 2"),
        ("a\tb\n\tb\n", {}, FormatError, "line 2: has no label"),
        (":x b\n", {"coarse": True}, FormatError, "line 1: has no label"),
        ("a\tb\n", {"label": 3}, InputError, "line 1: there is no column 3; the file has columns 1 to 2"),
        ("a\tb\n", {"label": 0}, InputError, "line 1: there is no column 0"),
        (SICK, {"sentences": 2, "label": "entailment_judgement"}, InputError, "Did you mean 'entailment_judgment'"),
        (SICK, {"text": ("sentence",)}, InputError, "there is no column 'sentence'"),
        ("a b c\n", {"label": 2}, InputError, "has no tabs, so there is no column 2"),
        ("a b c\n", {"sentences": 2}, FormatError, "line 1: has no tabs; expected two sentences and a label"),
        (
            "a\tb\n",
            {"sentences": 2},
            FormatError,
            "has 2 columns separated by tabs; expected two sentences and a label",
        ),
        ("a\tb\tx\n", {"sentences": 2, "kind": "number"}, FormatError, "line 1: expected a number, got 'x'"),
        ("a\tb\t1\na\tb\tnan\n", {"sentences": 2, "kind": "number"}, FormatError, "line 2: .* got 'nan'"),
        ("a\tb\tinf\n", {"sentences": 2, "kind": "number"}, FormatError, "got 'inf'"),
        ("a\tb\t\n", {"sentences": 2, "kind": "number"}, FormatError, "line 1: expected a number, got ''"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(read, tmp_path, text, settings, error, message):
    with pytest.raises(error, match=message) as caught:
        read(text, **settings)
    assert str(tmp_path / "file") in str(caught.value)


def test_settings_that_contradict_are_refused():
    with pytest.raises(ConfigError, match="there should be 2 columns of text, not 1: a"):
        ColumnSpec(2, ("a",))
    with pytest.raises(ConfigError, match="without a header there is no column 'label'"):
        ColumnSpec(label="label", header=False)


def test_binary_files_and_missing_ones_are_refused(tmp_path):
    (tmp_path / "binary").write_bytes(b"\x00\xff\xfe" * 100)
    with pytest.raises(InputError, match="a binary file"):
        list(read_labelled_text(tmp_path / "binary"))
    with pytest.raises(InputError, match="no such file"):
        list(read_labelled_text(tmp_path / "missing"))


def test_a_csv_file_is_read_by_its_columns(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text('id,text,label\n1,"Dull, slow\nand ""long"".",bad\n2,A fine\tfilm.,good\n')
    found = list(read_labelled_text(path, ColumnSpec(raw=True)))
    assert [example.label for example in found] == ["bad", "good"]
    assert found[0].sentences[0] == ["Dull", ",", "slow", "and", '"', "long", '"', "."]
    path.write_text("text,label\n" + "x" * 200_000 + ",good\n")
    with pytest.raises(FormatError, match="line 2: cannot be read as CSV"):
        list(read_labelled_text(path))
