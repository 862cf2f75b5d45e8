"""Out-of-vocabulary words: how they are generated, and which models trace them back to their base words."""

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pytest
from static_models import make_table
from tiny_models import make_encoder

from polyseme.analysis.words.generated_words import (
    RULES,
    WordLists,
    before_consonant,
    before_vowel,
    generate_forms,
    generate_misspellings,
    plural,
)
from polyseme.analysis.words.spelling import SpellingSettings, known_words, spelling
from polyseme.backends.static import StaticEncoder
from polyseme.errors import ConfigError, FormatError, InputError

VERBS = ("bake", "carry", "climb", "float", "guard", "paint", "plant", "shout", "spell", "stun", "touch", "walk")
NOUNS = ("apple", "castle", "engine", "island", "village", "window")
ADJECTIVES = ("bright", "gentle", "hazy", "quick", "solemn", "strange")
WORDS = (
    *VERBS,
    *(before_vowel(verb, ending) for verb in VERBS for ending in ("ed", "ing")),
    *(plural(word) for word in (*VERBS, *NOUNS)),
    *NOUNS,
    *ADJECTIVES,
    *(before_consonant(word, ending) for word in ADJECTIVES for ending in ("ly", "ness")),
    *("brighter", "quicker", "happiness", "government", "punctuation", "Paris", "42", "!"),
)
SOME = SpellingSettings(count=40)


class Letters:
    """Reads words by the pairs of letters in them, as a model that spells does."""

    name, dim, num_layers = "letters", 27 * 27, 1

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        for (word,) in sentences:
            vectors = np.zeros((1, 1, self.dim), np.float32)
            for first, second in zip(f"`{word.lower()}", f"{word.lower()}`", strict=True):
                vectors[0, 0, (ord(first) - 96) % 27 * 27 + (ord(second) - 96) % 27] += 1
            yield vectors


class Drowned(Letters):
    """The same under one large direction that tells nothing of words."""

    def embed(self, sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
        for words in sentences:
            vectors = next(super().embed([words]))
            vectors[0, 0, 0] = 50 * np.sin(len(words[0]) + ord(words[0][0]))
            yield vectors


@pytest.mark.parametrize(
    ("made", "right"),
    [
        (plural("box"), "boxes"),
        (plural("city"), "cities"),
        (plural("day"), "days"),
        (plural("hero"), None),
        (before_vowel("make", "ing"), "making"),
        (before_vowel("stun", "ed"), "stunned"),
        (before_vowel("carry", "er"), "carrier"),
        (before_vowel("carry", "ing"), "carrying"),
        (before_vowel("notice", "able"), "noticeable"),
        (before_vowel("agree", "ed"), "agreed"),
        (before_vowel("agree", "able"), "agreeable"),
        (before_vowel("tie", "ing"), "tying"),
        (before_vowel("begin", "er"), None),
        (before_vowel("float", "er"), "floater"),
        (before_consonant("hazy", "ness"), "haziness"),
        (before_consonant("gentle", "ly"), "gently"),
        (before_consonant("poetic", "ly"), "poetically"),
        (before_consonant("full", "ly"), "fully"),
    ],
)
def test_affixes_change_the_spelling_as_english_does(made, right):
    assert made == right


def test_forms_are_of_the_kinds_of_words_that_take_them():
    made = {item.word: item for item in generate_forms(WORDS, WordLists(WORDS, WORDS), 1000, seed=0)}
    assert {item.rule for item in made.values()} == set(RULES) - {"-ly", "-ness"}, "all adjectives have these already"
    assert made["repaint"].base == "paint"
    assert made["villageless"].rule == "-less"
    assert made["brightest"].base == "bright"
    assert not {"revillage", "unwalk", "castleable", "gentlest"} & set(made), "gentler is not known, so neither is this"


def test_rules_give_as_many_as_each_other_while_they_have_any():
    made = generate_forms(WORDS, WordLists(WORDS, WORDS), 16, seed=0)
    assert len(made) == 16
    counts = [sum(item.rule == rule for item in made) for rule in ("re-", "-able", "-less", "un-")]
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("make", [generate_forms, generate_misspellings])
def test_what_was_seen_is_never_made_and_the_seed_decides(make):
    lists = WordLists(WORDS, WORDS)
    made = make(WORDS, lists, 30, seed=1)
    assert made == make(WORDS, lists, 30, seed=1)
    assert made != make(WORDS, lists, 30, seed=2)
    assert not {item.word for item in made} & set(WORDS)
    seen = {item.word for item in made[:5]}
    again = make(WORDS, WordLists(WORDS, {*WORDS, *seen}), 30, seed=1)
    assert not {item.word for item in again} & seen


def test_a_misspelling_is_one_edit_away_from_a_word_of_letters():
    made = generate_misspellings(WORDS, WordLists(WORDS, WORDS), 1000, seed=3)
    assert {item.rule for item in made} == {"insert", "delete", "replace", "swap"}
    assert len({item.base for item in made}) == len(made)
    for item in made:
        assert item.base.isalpha()
        assert item.base.islower()
        assert len(item.word) - len(item.base) == {"insert": 1, "delete": -1}.get(item.rule, 0)
        if item.rule == "swap":
            assert sorted(item.word) == sorted(item.base)
        if item.rule == "replace":
            assert sum(one != other for one, other in zip(item.word, item.base, strict=True)) == 1


def test_who_reads_letters_traces_words_back_and_who_has_a_list_finds_nothing():
    settings = SpellingSettings(count=40, nearest=3)
    spelt = spelling(Letters(), WORDS, settings=settings)
    assert [(score.kind, score.metric) for score in spelt.scores] == [
        ("forms", "cosine"),
        ("forms", "whitened"),
        ("misspellings", "cosine"),
        ("misspellings", "whitened"),
    ]
    for score in spelt.scores:
        assert score.readable == score.count == 40
        assert score.low < score.share < score.high or score.share == 1
        assert score.found == sum(rule.found for rule in score.rules) == round(score.share * score.count)
    assert all(score.share > 0.8 for score in spelt.scores if score.metric == "cosine")

    listed = StaticEncoder(make_table(WORDS))
    assert known_words("list.txt", listed) == list(WORDS)
    for score in spelling(listed, WORDS, settings=settings).scores:
        assert (score.readable, score.found, score.share) == (0, 0, 0)
        assert score.answers[0].nearest == ()


def test_whitening_takes_away_a_direction_that_drowns_the_others():
    scores = {(score.kind, score.metric): score.share for score in spelling(Drowned(), WORDS, settings=SOME).scores}
    assert scores["misspellings", "whitened"] > scores["misspellings", "cosine"]


def test_the_right_word_may_be_among_as_many_neighbours_as_asked():
    shares = [
        spelling(make_encoder(), WORDS, settings=SpellingSettings(count=30, nearest=nearest)).scores[2].share
        for nearest in (1, 10, len(WORDS))
    ]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_further_words_of_the_training_text_are_not_made():
    first = spelling(Letters(), WORDS, settings=SOME)
    seen = [answer.made.word for score in first.scores for answer in score.answers]
    again = spelling(Letters(), WORDS, seen, SOME)
    assert again.excluded == len({*WORDS, *seen})
    assert not {answer.made.word for score in again.scores for answer in score.answers} & set(seen)


def test_lists_that_nothing_can_be_made_of_are_refused():
    with pytest.raises(InputError, match="no forms can be made from these 2 words"):
        spelling(Letters(), ["Paris", "42"])
    with pytest.raises(ConfigError, match="nearest must be 1 or more"):
        SpellingSettings(nearest=0)
    with pytest.raises(FormatError, match="--words FILE"):
        known_words("tests/fixtures/tiny", make_encoder())


def test_the_command_tells_shares_and_examples(call, tmp_path, fixtures):
    (tmp_path / "words.txt").write_text("\n".join(WORDS) + "\n")
    (tmp_path / "seen.txt").write_text("repaint 7\n")
    arguments = ("spelling", fixtures / "tiny", "--words", tmp_path / "words.txt", "--seen", tmp_path / "seen.txt")
    outcome = call(*arguments, "--count", 20, "--json", tmp_path / "out.json")
    assert outcome.status == 0
    assert "regular forms of frequent words" in outcome.out
    assert ", by rule: " in outcome.out
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["model"] == "tiny"
    assert len(result["scores"]) == 4
    assert all(answer["made"]["word"] != "repaint" for score in result["scores"] for answer in score["answers"])


def test_the_command_says_that_a_list_finds_nothing(call, tmp_path):
    numbers = np.random.default_rng(0).normal(size=(len(WORDS), 3))
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(WORDS, numbers, strict=True)]
    (tmp_path / "list.txt").write_text("\n".join(lines) + "\n")
    outcome = call("spelling", tmp_path / "list.txt", "--count", 20)
    assert outcome.status == 0
    assert "by construction" in outcome.out


def test_a_model_without_a_list_asks_for_one(call, fixtures):
    outcome = call("spelling", fixtures / "tiny")
    assert outcome.status == 2
    assert "--words FILE" in outcome.err
