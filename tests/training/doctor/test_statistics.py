"""A look at text before it is trained on."""

import dataclasses
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from polyseme.cli import app
from polyseme.errors import InputError
from polyseme.training.doctor.advice import advise
from polyseme.training.doctor.examine import MIXED, NO_LETTERS, count_signs, is_cropped, script_of
from polyseme.training.doctor.statistics import DuplicateLines, examine
from polyseme.training.shards import sources

TEXT = "The cat sat. It slept!\nThe cat sat. It slept!\nПривет, мир.\n\n12 %\n" + "a" * 49 + " " + "ж" * 25 + "\n"


@pytest.fixture
def facts(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    return examine(tmp_path / "text.txt", workers=1)


def test_a_text_is_counted(facts):
    assert (facts.documents, facts.lines, facts.sentences, facts.words) == (2, 5, 7, 22)
    assert facts.characters == len(TEXT) - 1  # the blank line
    assert facts.bytes == len(TEXT.encode()) - 1
    assert facts.types == 14
    assert facts.types_once == 7
    assert facts.frequent == {2: 7, 3: 1, 5: 0, 10: 0}
    assert facts.coverage[1000] == 1
    assert facts.longest_sentence == 4


def test_scripts_copies_and_long_words_are_counted(facts):
    assert facts.scripts == {"Latin": 11, NO_LETTERS: 8, "Cyrillic": 3}
    assert facts.duplicate_lines == pytest.approx(1 / 5)
    assert not facts.duplicates_estimated
    assert (facts.cropped, facts.cropped_types, facts.cropped_by_characters) == (2, 2, 1)


def test_two_processes_find_what_one_finds(tmp_path, monkeypatch, facts):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 20)
    assert examine(tmp_path / "text.txt", workers=2) == facts


def test_a_sentence_a_line_is_read_as_such(tmp_path):
    (tmp_path / "text.txt").write_text("a. b\nc\n")
    facts = examine(tmp_path / "text.txt", tokenized=True)
    assert (facts.sentences, facts.words) == (2, 3)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_text_without_words_is_refused(tmp_path, text):
    (tmp_path / "text.txt").write_text(text)
    with pytest.raises(InputError, match="no words"):
        examine(tmp_path / "text.txt")


@pytest.mark.parametrize(
    ("word", "script"),
    [
        ("cat", "Latin"),
        ("naïve", "Latin"),
        ("мир", "Cyrillic"),
        ("हिन्दी", "Devanagari"),
        ("العربية", "Arabic"),
        ("한국", "Hangul"),
        ("東京", "Han"),
        ("ＡＢＣ", "Latin"),
        ("食べる", "Han"),
        ("ラーメン", "Katakana"),
        ("ไทย", "Thai"),
        ("cаt", MIXED),  # with a Cyrillic а
        ("12%", NO_LETTERS),
        ("—", NO_LETTERS),
        ("10ª", NO_LETTERS),
        ("時々", "Han"),
        ("IBM은", "Latin"),
    ],
)
def test_the_script_of_a_word(word, script):
    assert script_of(word) == script


@pytest.mark.parametrize(
    ("word", "by_bytes", "cropped"),
    [
        ("x" * 48, True, False),
        ("x" * 49, True, True),
        ("x" * 49, False, True),
        ("ж" * 25, True, True),
        ("ж" * 25, False, False),
    ],
)
def test_words_are_cropped_by_bytes_or_by_characters(word, by_bytes, cropped):
    assert is_cropped(word, by_bytes) == cropped


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("a <b>bold</b> word", "markup"),
        ("fish &amp; chips", "markup"),
        ("{{Infobox}}", "markup"),
        ("a\tb\tc\td", "tables"),
        ("| a | b |", "tables"),
        ("caf\ufffd", "replacements"),
        ("cafÃ©", "decoded_twice"),
        ("itâ€™s", "decoded_twice"),
        ("a\x01b", "controls"),
        ("one\rtwo", "carriage_returns"),
        ("so , and so .", "spaced"),
        ("so, and so", "glued"),
    ],
)
def test_signs_of_trouble_are_seen(line, sign):
    assert count_signs([line])[sign] == 1
    assert not count_signs(["An honest line of words. 3 < 5 and 7 > 2, Ärzte & Co"])[sign] or sign == "glued"


def test_copies_are_counted_exactly_and_beyond_the_limit_about():
    rng = np.random.default_rng(0)
    distinct = rng.integers(0, 1 << 63, 20_000, np.uint64)
    lines = np.concatenate([distinct, distinct[:10_000], distinct[:10_000]])
    for limit, tolerance in ((30_000, 0), (1_000, 0.05)):
        seen = DuplicateLines(limit)
        for start in range(0, len(lines), 700):
            seen.add(lines[start : start + 700])
        assert seen.duplicate_fraction() == pytest.approx(0.5, abs=tolerance)
        assert seen.sampled == (tolerance > 0)


@pytest.mark.parametrize(
    ("words", "preset", "epochs"),
    [
        (1e6, "tiny", 10),
        (19e6, "tiny", 10),
        (2e7, "small", 10),
        (1e8, "medium", 5),
        (6e8, "original", 5),
        (2e9, "original", 3),
    ],
)
def test_more_words_are_advised_a_larger_model_and_fewer_rounds(facts, words, preset, epochs):
    facts = dataclasses.replace(facts, words=int(words), frequent={5: 25_000})
    advice = advise(facts)
    assert (advice.preset, advice.epochs, advice.vocabulary) == (preset, epochs, 20_000)
    assert advice.seconds is None


def test_the_vocabulary_has_words_that_occur_often_and_suits_the_model(facts):
    for frequent, words, size in (
        (300, 1e5, 1_000),
        (90_000, 1e6, 30_000),
        (90_000, 3e7, 70_000),
        (9**9, 1e9, 800_000),
    ):
        large = dataclasses.replace(facts, words=int(words), frequent={5: frequent})
        assert advise(large).vocabulary == size


def test_time_is_told_where_speed_was_measured(facts):
    asked = []

    def speed(preset):
        asked.append(preset)
        return 10.0

    assert advise(facts, speed).seconds == pytest.approx((22 + 7) * 10 / 10)
    assert asked == ["tiny"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words": 999}, "999 words are few"),
        ({"documents": 1, "lines": 5000}, "no blank line"),
        ({"duplicate_lines": 0.3}, "30.0 % of the lines are copies"),
        ({"signs": {"spaced": 4}}, "Give --tokenized"),
        ({"tokenized": True, "signs": {"glued": 4}}, "Leave out --tokenized"),
        ({"scripts": {"Thai": 21}}, "segmenter"),
        ({"long_sentences": 1, "longest_sentence": 9999}, "9,999"),
        ({"scripts": {"Latin": 14, "Greek": 7}}, "Latin and Greek (33.3 %)"),
        ({"scripts": {"Han": 10, "Hiragana": 8, "Thai": 2}}, "Han and Thai (10.0 %)"),
        ({"scripts": {"Latin": 20, MIXED: 1}}, "1 word with letters of several scripts that look alike"),
        ({"scripts": {NO_LETTERS: 11, "Latin": 10}}, "52.4 % of the words have no letters"),
        ({"cropped": 9, "cropped_by_characters": 1}, "count characters instead of bytes"),
        ({"cropped": 9, "cropped_by_characters": 9}, "words run together"),
        ({"signs": {"markup": 1}}, "1 of 5 lines look like markup"),
        ({"signs": {"replacements": 1}}, "U+FFFD"),
        ({"signs": {"carriage_returns": 1}}, "tr '\\r' '\\n'"),
    ],
)
def test_what_is_wrong_is_said_with_its_remedy(facts, changes, message):
    sound = dataclasses.replace(
        facts, words=2_000_000, duplicate_lines=0, scripts={"Latin": 2_000_000}, cropped=0, signs={}, documents=9
    )
    assert advise(sound).warnings == ()
    if "scripts" in changes:
        changes = {"words": sum(changes["scripts"].values()), **changes}
    if "cropped" in changes:
        changes = {"words": 21, **changes}
    assert any(message in warning for warning in advise(dataclasses.replace(sound, **changes)).warnings)


def test_the_command_shows_a_table_and_advice(tmp_path, facts):
    outcome = CliRunner().invoke(app, ["doctor", str(tmp_path / "text.txt"), "--workers", "1"])
    assert outcome.exit_code == 0, outcome.output
    rows = [line.split() for line in outcome.stdout.splitlines()]
    assert ["words", "22"] in rows
    assert ["Cyrillic", "3", "13.6"] in rows
    assert "warning: 22 words are few" in outcome.stdout
    assert "advice: preset tiny" in outcome.stdout
    assert re.search(r"; about \d+ seconds on this machine", outcome.stdout)


def test_the_command_gives_json(tmp_path, facts):
    outcome = CliRunner().invoke(
        app, ["doctor", str(tmp_path / "text.txt"), "--no-time", "--workers", "1", "--json", "-"]
    )
    found = json.loads(outcome.stdout)
    assert found["facts"]["words"] == 22
    assert found["advice"]["preset"] == "tiny"
    assert len(found["advice"]["warnings"]) > 1


def test_the_command_waits_for_no_torch(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    code = f"import sys; sys.argv = ['polyseme', 'doctor', '--no-time', {str(tmp_path / 'text.txt')!r}]\n"
    code += "from polyseme.cli import app\ntry: app()\nexcept SystemExit: pass\nassert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
