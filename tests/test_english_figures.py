"""The texts and tables of the English model's figures (benchmarks/english*.py)."""

import hashlib
import lzma
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import english_table
    import english_texts

    yield english_texts, english_table
    for name in ("english_texts", "english_table"):
        sys.modules.pop(name)


def held_out_text(kept: bool) -> str:
    """A document of two lines whose hash begins with 00, or does not."""
    for number in range(100_000):
        text = f"The river bank number {number}.\nIt was muddyish there."
        if hashlib.sha256(text.encode()).hexdigest().startswith("00") == kept:
            return text
    raise AssertionError


@pytest.fixture
def data(tmp_path):
    (tmp_path / "corpora" / "en").mkdir(parents=True)
    documents = [held_out_text(False).replace("muddyish", "seen"), held_out_text(True), "Another one."]
    text = "\n\n".join(documents) + "\n"
    (tmp_path / "corpora" / "en" / "wikipedia-00.txt.xz").write_bytes(lzma.compress(text.encode()))
    (tmp_path / "corpora" / "en" / "books.txt").write_text("Call me Ishmael.\n")
    (tmp_path / "eval" / "lm-wikitext103").mkdir(parents=True)
    wikitext = " \n = Lobster = \n \n It weighs 1 @,@ 000 g or 2 @.@ 2 lb , a two @-@ thirds <unk> . It is blue . \n"
    wikitext += " \n = Homarus = \n \n Short . \n = = Part = = \n"
    (tmp_path / "eval" / "lm-wikitext103" / "wiki.valid.tokens").write_text(wikitext)
    return tmp_path


def test_documents_are_held_out_by_their_hash_and_are_not_seen(benchmarks, data):
    texts, _ = benchmarks
    (document,) = texts.held_out(data)
    assert document.sentences[1] == ["It", "was", "muddyish", "there", "."]
    assert document.characters == len(held_out_text(True)) + 1
    seen = texts.seen_words(data)
    assert {"ishmael", "another", "river"} <= seen
    assert "muddyish" not in seen


def test_wikitext_is_put_together_again(benchmarks, data):
    texts, _ = benchmarks
    lobster, homarus = texts.wikitext(data)
    assert lobster.sentences == [
        ["=", "Lobster", "="],
        ["It", "weighs", "1,000", "g", "or", "2.2", "lb", ",", "a", "two-thirds", "<unk>", "."],
        ["It", "is", "blue", "."],
    ]
    assert lobster.characters == len("= Lobster =\nIt weighs 1,000 g or 2.2 lb , a two-thirds <unk> . It is blue .\n")
    assert homarus.sentences[-1] == ["=", "=", "Part", "=", "="]


def test_tables_go_between_the_markers_and_nowhere_else(benchmarks, tmp_path):
    _, tables = benchmarks
    results = {
        "weights": "0123456789abcdef",
        "parts": {"files": {"seconds": 1, "result": {"total": 26_000_000}}},
    }
    card = tmp_path / "card.md"
    place = "<!-- figures: written by benchmarks/english.py -->\nold\n<!-- end of figures -->"
    card.write_text(f"before\n{place}\nafter\n")
    for _ in range(2):
        tables.insert(card, tables.FIGURES, tables.table(results))
    text = card.read_text()
    assert text.startswith("before\n<!-- figures")
    assert text.endswith("<!-- end of figures -->\nafter\n")
    assert text.count("26.0 MB") == 1
    assert "old" not in text
    with pytest.raises(SystemExit, match="no place for the leanings"):
        tables.insert(card, tables.LEANINGS, "")


def test_the_table_names_the_processor_that_times_were_taken_on(benchmarks):
    _, tables = benchmarks
    timed = {"seconds": 1, "processor": "Neoverse-N1 (aarch64)", "result": {"seconds": 12.7, "threads": 2}}
    text = tables.table({"weights": "0123456789abcdef", "parts": {"demo": timed}})
    assert "weights 0123456789ab; times on Neoverse-N1 (aarch64); demo 1 s" in text


def test_the_card_has_places_for_both_tables(benchmarks, tmp_path):
    _, tables = benchmarks
    card = tmp_path / "card.md"
    card.write_bytes((BENCHMARKS.parent / "docs" / "models" / "english.md").read_bytes())
    shares = {"nurse": {"he": 0.1, "she": 0.3}, "judge": {"he": 0.2, "she": 0.1}}
    results = {"parts": {"leanings": {"result": {"occupations": shares}}}}
    tables.insert(card, tables.LEANINGS, tables.leanings_table(results))
    tables.insert(card, tables.FIGURES, "all of them")
    assert "| nurse | 1 he to 3.0 she |\n| judge | 2.0 he to 1 she |" in card.read_text()
    assert "all of them" in card.read_text()
