"""Hostile text files: CoNLL, CoNLL-U, labelled columns, vocabularies, corpora, plain and compressed."""

import bz2
import gzip
import lzma

from fuzzing import HARNESS, damaged, put, works_or_refuses
from hypothesis import given
from hypothesis import strategies as st

from polyseme.text.conll import LabelSpec, label_name, read_labelled
from polyseme.text.corpus import read_sentences
from polyseme.text.labelled import ColumnSpec, read_labelled_text
from polyseme.text.tokenizer import tokenize
from polyseme.text.vocabulary import Vocabulary

COLUMNS = b"-DOCSTART- -X- O\n\nThe DT O\nU.N. NNP B-ORG\n\n# SYM O\n"
CONLLU = (
    b"# sent_id = 1\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n1\tde\tde\tADP\tIN\t_\t3\tcase\t_\t_\n"
    b"2\tle\tle\tDET\tDT\tDefinite=Def|Number=Sing\t3\tdet\t_\t_\n8.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
    b"3\tchat\tchat\tNOUN\tNN\tNumber=Sing\t0\troot\t_\tSpaceAfter=No\n\n"
)
PAIRS = b"pair_ID\tsentence_A\tsentence_B\tentailment_judgment\trelatedness_score\n1\ta cat\ta dog\tNEUTRAL\t3.5\n"
LABELLED = (b"label\tsentence\nDESC:manner\thow so ?\n", b"3 a gorgeous , witty movie .\n0 dull\n", PAIRS)
VOCABULARY = b"<S>\n</S>\n<UNK>\nthe\nchat\xc2\xa0noir\n!!!MAXTERMID\n"
PROSE = (
    "Mr. Smith's 3.5 cats (e.g. Tom) can't read “http://x.org/a.b”. L'homme: 漢字カナ! 🇫🇷\r\n\n\u2029क्‍या؟ a.b@c.de"
).encode()

label_specs = st.builds(
    LabelSpec, column=st.none() | st.sampled_from(["upos", "2", "0", "x"]), words=st.none() | st.integers(-1, 11)
) | st.builds(LabelSpec, feature=st.sampled_from(["Number", "number", ""]))
column_specs = st.builds(
    ColumnSpec,
    text=st.none() | st.tuples(st.sampled_from(["1", "2", "sentence", "nobody"])),
    label=st.none() | st.sampled_from(["1", "label", "relatedness_score", "99"]),
    kind=st.sampled_from(["label", "number", "none"]),
    coarse=st.booleans(),
    raw=st.booleans(),
) | st.builds(ColumnSpec, sentences=st.just(2), kind=st.sampled_from(["label", "number", "none"]))


@HARNESS
@given(damaged(COLUMNS, CONLLU, tokens=(b"-DOCSTART-", b"#", b"1-2", b"_", b"=|=")), label_specs)
def test_conll(folder, content, spec):
    path = put(folder / "a.conll", content)
    with works_or_refuses():
        for sentence in read_labelled(path, spec):
            assert len(sentence.words) == len(sentence.labels) > 0
    with works_or_refuses():
        label_name(path, spec)


@HARNESS
@given(damaged(*LABELLED, tokens=(b"label", b"sentence_B", b"score")), column_specs)
def test_labelled_columns(folder, content, spec):
    with works_or_refuses():
        for example in read_labelled_text(put(folder / "a.tsv", content), spec):
            assert len(example.sentences) == spec.sentences


@HARNESS
@given(damaged(VOCABULARY, tokens=(b"<S>\n", b"!!!MAXTERMID")))
def test_vocabulary(folder, content):
    with works_or_refuses():
        vocabulary = Vocabulary.load(put(folder / "vocab.txt", content))
        assert vocabulary.decode(vocabulary.encode(vocabulary)) == list(vocabulary)


@HARNESS
@given(damaged(PROSE, CONLLU, COLUMNS), st.booleans())
def test_corpus(folder, content, raw):
    with works_or_refuses():
        assert all(word for sentence in read_sentences(put(folder / "a.txt", content), raw) for word in sentence)


@HARNESS
@given(damaged(PROSE).map(lambda content: content.decode(errors="surrogateescape")) | st.text())
def test_tokenizer(text):
    with works_or_refuses():
        words = [(text[start:end], word) for found in tokenize(text) for word, (start, end) in zip(*found, strict=True)]
    assert all(shown == word for shown, word in words)


def _compressed():
    parts = PROSE, PROSE[::-1]
    formats = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    return {suffix: b"".join(map(compress, parts)) for suffix, compress in formats.items()}


@HARNESS
@given(st.sampled_from(sorted(_compressed().items())), st.data())
def test_compressed_corpus(folder, sample, data):
    suffix, content = sample
    path = put(folder / f"a{suffix}", data.draw(damaged(content, tokens=(content,))))
    with works_or_refuses():
        list(read_sentences(path, raw=True))
