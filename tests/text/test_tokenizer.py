"""Raw text to sentences of words."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.text.tokenizer import tokenize, tokenize_words


def cut(text):
    return [sentence.words for sentence in tokenize(text)]


def one_of_each_category():
    """A character of every Unicode category."""
    found = {}
    for code in range(0x110000):
        found.setdefault(unicodedata.category(chr(code)), chr(code))
    return list(found.values())


def words(text):
    return [word for sentence in cut(text) for word in sentence]


WHOLE = (
    """
https://example.com/a_b?x=1&y=2#z http://localhost:8080 www.example.org example.com/path me.too@mail.example.co.uk
@handle #hashtag a.txt example.com 3.5m 1,000,000 1.000,50 10:30 1/2 2018-10-16 COVID-19 well-known mid-October
jack-o'-lantern AT&T snake_case 10th U.S. U.S.A e.g. a.m. Mr. Dr. St. Ph.D. J.R.R. U.S.-led O'Brien o'clock rock'n'roll
ng'ombe м'яч м’яч Türkiye'nin aujourd'hui quelqu'un т.е. col·lecció 'em 'til '90s ... .. … …… -- ---- === !!! ?! ?? ''
:-) :) ;-) :D :'( <3 :/ 👍 👍🏽 👨‍👩‍👧‍👦 🇫🇷 1️⃣ #️⃣ ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 हिन्दी क्‍या விக்கிப்பீடியா ภาษาไทยที่ดี العَرَبِيَّةُ می‌خواهم בֵּית צה"ל
한국어는 ラーメン ひらがな Vie\u0302\u0323t co\u00adoperate &amp; .5 $ % — “ « ( ] 。 ، ۔
""".replace("\\u0302", "\u0302")
    .replace("\\u0323", "\u0323")
    .replace("\\u00ad", "\u00ad")
    .split()
)


@pytest.mark.parametrize("word", WHOLE)
def test_stays_whole(word):
    assert words(word) == [word]
    assert word in words(f"so {word} it")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("can't won’t WON'T", "ca n't wo n’t WO N'T"),
        ("I'll I’m they've I'd've John's", "I 'll I ’m they 've I 'd 've John 's"),
        ("O'Brien's dogs' 1990's", "O'Brien 's dogs ' 1990 's"),
        ("l'homme d'accord qu'il L’Italia", "l' homme d' accord qu' il L’ Italia"),
        ("dell'arte jusqu'à n'y c'est-à-dire", "dell' arte jusqu' à n' y c' est-à-dire"),
        ("y'all rock 'n' roll", "y' all rock 'n' roll"),
        ("$5 20% #1 and/or _so_", "$ 5 20 % # 1 and / or _ so _"),
        ("(see http://x.org/a).", "( see http://x.org/a ) ."),
        ("'yo' \"hi,\" [b]", "' yo ' \" hi , \" [ b ]"),
        ("J. K. Rowling and Plan B.", "J. K. Rowling and Plan B ."),
        ("end.Next 3.50/lb", "end . Next 3.50 / lb"),
        ("🇫🇷🇩🇪👍👍1️⃣2️⃣", "🇫🇷 🇩🇪 👍 👍 1️⃣ 2️⃣"),
        ("我在2018年ABC公司，", "我 在 2018 年 ABC 公 司 ，"),
        ("東京タワーで本を読む", "東 京 タワー で 本 を 読 む"),
        ("ジョン・スミス", "ジョン ・ スミス"),
        ("なまえme@x.org 漢me@x.org カx.org/a", "なまえ me@x.org 漢 me@x.org カ x.org/a"),
        ("https://x.org/a\0b\u200bc", "https://x.org/a b c"),
        ("https://x.org/a，你", "https://x.org/a ， 你"),
    ],
)
def test_is_cut_as(text, expected):
    assert words(text) == expected.split()


@pytest.mark.parametrize(
    "sentences",
    [
        ["He came .", "She left !", "Why ?", "So ..."],
        ["He met Mr. Smith at 10 a.m. on St. James St. near No. 5 .", "No .", "Good ."],
        ["The U.S. is big .", "He lives in the U.S.", "The end ."],
        ["George W. Bush and J. K. Rowling .", "End ."],
        ['" What ? " he said .', '" No ! "', "( He came . )", "Then ... and so ."],
        ["z. B. das Haus .", "Gut ."],
        ["वह गया ।", "वह आया ॥"],
        ["چرا ؟", "نعم ۔"],
        ["1 . The first item .", "Then ."],
        ["im here .", "where ?", "No ."],
    ],
)
def test_sentences_end_where_a_reader_would_end_them(sentences):
    text = " ".join(sentences)
    for tight in (".", "!", "?", "...", "।", "॥", "؟", "۔"):
        text = text.replace(f" {tight}", tight)
    text = text.replace('" What', '"What').replace('? "', '?"').replace('" No', '"No').replace('! "', '!"')
    text = text.replace("( He", "(He").replace(". )", ".)")
    assert [" ".join(sentence) for sentence in cut(text)] == sentences


def test_chinese_sentences_need_no_space():
    assert cut("你好！“是吗？”他说。") == [["你", "好", "！"], ["“", "是", "吗", "？", "”"], ["他", "说", "。"]]


@pytest.mark.parametrize("blank", ["\n\n", "\r\n\r\n", "\n \t\n", "\u2029"])
def test_a_blank_line_ends_a_sentence(blank):
    assert cut(f"Title{blank}and text") == [["Title"], ["and", "text"]]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\u2028", "\t", "\u00a0", "\u3000"])
def test_one_newline_is_a_space(newline):
    assert cut(f"one{newline}sentence") == [["one", "sentence"]]


@pytest.mark.parametrize("invisible", ["\0", "\x07", "\x7f", "\x85", "\u200b", "\ufeff", "\u200e", "\u2060"])
def test_what_cannot_be_seen_separates_and_is_no_word(invisible):
    assert words(f"{invisible}a{invisible}b{invisible}") == ["a", "b"]


@pytest.mark.parametrize("text", ["", " ", "\n\n \t", "\ufeff", "\0\u200b", "\u200d\ufe0f"])
def test_a_text_without_words_gives_nothing(text):
    assert cut(text) == []


def test_a_lone_surrogate_is_a_word():
    assert words("a\ud800b") == ["a", "\ud800", "b"]


def test_it_is_lazy():
    assert next(tokenize("One. " * 10)).words == ["One", "."]


MARKS = "' ’ n't l' . ... - _ http:// www. @ # 1 , Mr. U. a B » 。 : ) 👍 🇫 漢 カ を は न"
ODD = [*MARKS.split(), "\u094d", "\u0301", "\u200d", "\ufe0f", "\u20e3", "\n", "\n\n", " ", "\r", "\0", "\ud800"]
texts = st.one_of(st.text(), st.text(st.characters(exclude_categories=[])), st.lists(st.sampled_from(ODD)).map("".join))


@given(texts)
def test_spans_ascend_and_show_the_words(text):
    end = 0
    for sentence in tokenize(text):
        assert len(sentence.words) == len(sentence.spans) > 0
        for word, (start, stop) in zip(sentence.words, sentence.spans, strict=True):
            assert end <= start < stop
            assert text[start:stop] == word
            end = stop


@given(texts)
def test_words_without_their_places_are_the_same(text):
    assert list(tokenize_words(text)) == cut(text)


@given(texts)
def test_every_visible_character_is_in_a_word(text):
    kept = set().union(*(range(*span) for sentence in tokenize(text) for span in sentence.spans))
    for place, character in enumerate(text):
        visible = not character.isspace() and unicodedata.category(character) not in ("Cc", "Cf", "Mn", "Cn")
        assert place in kept or not visible


@given(texts)
def test_words_hold_no_space_and_no_control(text):
    assert not any(c.isspace() or unicodedata.category(c) == "Cc" for word in words(text) for c in word)


@given(st.lists(st.sampled_from(["The", "cat", "isn't", "3.5", "(so)", "très", "है", "ладно", "well-known", ","])))
def test_tokenising_words_again_changes_nothing(chunks):
    once = words(" ".join(chunks))
    assert words(" ".join(once)) == once


# One character of every category, and what the patterns look for: marks, quotes, abbreviations, addresses, blank lines.
HOSTILE = [
    *ODD,
    *one_of_each_category(),
    "\u2029",
    "\n\n-",
    "a\u2029",
    "を",
    "カあ",
    "漢a",
    "漢aaa",
    "a'",
    "a.",
    "a.B.",
    "я.",
    "A. ",
    "a. ",
]
HOSTILE += [
    "a-",
    "a@",
    "(",
    ".)",
    ". ",
    ". (",
    "1. ",
    "1. b ",
    "x.com/",
    "-_",
    ".+",
    "Mr.",
    "No.",
    "^_",
    "\n\r",
    "\u2029-",
    "。a",
]
HOSTILE += [
    "\n \u2029",
    "a_",
    "jusqu'",
    "www.,",
    "http://.",
    "a\u0301",
    "👨\u200d",
    "🇫🇷",
    "1,",
    "1:",
    "&#1",
    "\u00ad",
    "..\n",
    "é-",
]
ENGLISH = "Mr. Smith, who didn't sleep well, went to the U.S. in 1996. He paid $5.50 for it; nobody asked why. "


def processor_time(text):
    start = time.process_time()
    for _ in tokenize(text):
        pass
    return time.process_time() - start


@pytest.mark.parametrize("tail", ["", "я_"])
def test_time_is_linear_whatever_the_text(tail):
    """Ten times the length, ten times the time (quadratic: a hundred); no text takes much longer than prose."""
    prose = min(processor_time(ENGLISH * 50) for _ in range(3))
    for unit in HOSTILE:
        short, long = (unit * (size // len(unit)) + tail for size in (500, 5_000))
        once, ten = processor_time(short), processor_time(long)
        for _ in range(10):  # a busy machine only adds time
            if ten <= 12 * once and ten <= 8 * prose:
                break
            once, ten, prose = (
                min(once, processor_time(short)),
                min(ten, processor_time(long)),
                min(prose, processor_time(ENGLISH * 50)),
            )
        assert ten <= max(30 * once, 0.002), f"{unit!r}: {ten / once:.0f} times the time for ten times the length"
        assert ten <= 20 * prose, f"{unit!r}: {ten / prose:.0f} times the time of prose"


def test_a_german_date_does_not_end_a_sentence():
    assert len(list(tokenize("Am 3. Oktober war es kalt. Dann kam der Schnee."))) == 2
