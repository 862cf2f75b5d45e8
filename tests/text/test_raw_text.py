"""Raw text is told from tokenised text by its punctuation and its lines."""

import pytest

from polyseme.text.raw_text import ENOUGH, RawTextDetector, watch_for_raw_text

RAW = "He sat on the bank, and waited. Then he left.\nWhy? Nobody knows; it was late.\n"
TOKENISED = "He sat on the bank , and waited .\nMr. Smith of Acme Inc. left at 3:30 p.m. .\nWhy ?\n"


def evidence(text):
    found = []
    assert list(watch_for_raw_text(map(str.split, text.splitlines()), found.append)) == [
        line.split() for line in text.splitlines()
    ]
    return found


@pytest.mark.parametrize(
    "text",
    [
        RAW,
        "One sentence.\nAnother one!\n",
        "他坐在河岸上，等了很久。然后走了。\n为什么？没人知道。\n",
        f"{'word ' * 150}\n" * 3,
    ],
)
def test_raw_text_is_found_once(text):
    assert len(evidence(text)) == 1


@pytest.mark.parametrize("text", [TOKENISED, "", "\n\n", "no marks at all\nin any line\n", "Hello world.\n"])
def test_tokenised_text_is_left_alone(text):
    assert evidence(text) == []


def test_the_evidence_is_a_number():
    assert evidence(RAW) == ["5 of its first 16 words end in a punctuation mark"]
    assert evidence(f"{'word ' * 150}\n") == ["a typical line has 150 words"]


def test_the_first_lines_decide():
    lines = [["He", "left", "."]] * ENOUGH + [["raw,", "raw."]] * 10 * ENOUGH
    found = []
    assert list(watch_for_raw_text(iter(lines), found.append)) == lines
    assert found == []
    detector = RawTextDetector()
    for line in lines:
        detector.add(line)
    assert detector.has_enough
