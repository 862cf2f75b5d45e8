"""Label sets of taggers, and labelled sentences as the user gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polyseme.errors import InputError
from polyseme.tasks.features.reader import as_word_lists, check_listed
from polyseme.tasks.tagging.schemes import (
    Constraints,
    Scheme,
    constraints,
    convert,
    detect,
    inside_labels,
    is_entity_label,
    read_spans,
)

NO_LABEL = "_"  # stands for a word without a label, as in CoNLL-U
MAX_LABELS = 1000  # more kinds than any tag set has are another column


@dataclass(frozen=True)
class LabelledSentences:
    """Labelled sentences: word lists, and a label for each word."""

    sentences: list[list[str]]
    labels: list[list[str]]

    @classmethod
    def of(
        cls, sentences: Iterable[str | Sequence[str]], labels: Iterable[Sequence[str | None]], which: str
    ) -> LabelledSentences:
        """Check that there is a label for each word; a word whose label is None has the label ``_``."""
        texts = list(check_listed(sentences))
        words, given = list(as_word_lists(texts)), [list(row) for row in labels]
        if len(words) != len(given):
            raise InputError(f"the {which} set has {len(words):,} sentences, but labels for {len(given):,}")
        for number, (one, other) in enumerate(zip(words, given, strict=True)):
            if len(one) != len(other):
                remedy = "; the text was split into these words: give a label for each, or give word lists"
                raise InputError(
                    f"the {which} set's sentence {number} has {len(one)} words, but {len(other)} labels: "
                    f"{one!r:.200}{remedy if isinstance(texts[number], str) else ''}"
                )
        return cls(words, [[NO_LABEL if label is None else str(label) for label in row] for row in given])

    def without_empty(self) -> LabelledSentences:
        """The labelled sentences without empty ones."""
        filled = [pair for pair in zip(self.sentences, self.labels, strict=True) if pair[0]]
        return LabelledSentences([words for words, _ in filled], [labels for _, labels in filled])

    def __len__(self) -> int:
        return len(self.sentences)


@dataclass(frozen=True)
class LabelSet:
    """The numbered labels of a tagger; entities are BIOES inside, and in the training's scheme outside.

    Attributes:
        scheme: The scheme of the labels outside.
        names: The labels inside, in order of their numbers.
    """

    scheme: Scheme
    names: tuple[str, ...]

    @classmethod
    def learn(cls, labels: Sequence[Sequence[str]]) -> LabelSet:
        """Learn the labels and their scheme from a training set."""
        kinds = Counter(label for row in labels for label in row)
        if not kinds:
            raise InputError("the training set is empty: no word in it has a label")
        if len(kinds) == 1:
            raise InputError(f"all labels in training are {next(iter(kinds))!r}; give at least two different labels")
        scheme = detect(labels)
        if scheme == "plain":
            names = sorted(kinds)
        else:
            names = list(inside_labels({span.type for row in labels for span in read_spans(row)}))
        if len(names) > MAX_LABELS:
            shown = ", ".join(label for label, _ in kinds.most_common(4))
            raise InputError(
                f"training has {len(names):,} different labels ({shown}, ...), more than the limit of "
                f"{MAX_LABELS:,}; is this the column of the labels?"
            )
        return cls(scheme, tuple(names))

    @property
    def constraints(self) -> Constraints:
        """The transitions between these labels that the scheme allows."""
        return constraints(self.names, self.scheme)

    @property
    def has_entities(self) -> bool:
        """Whether the labels are of entities."""
        return self.scheme != "plain"

    def encode(self, labels: Sequence[str]) -> list[int]:
        """The numbers of a sentence's labels, all of which occurred in training."""
        numbers = {name: number for number, name in enumerate(self.names)}
        return [numbers[label] for label in (convert(labels, "BIOES") if self.has_entities else labels)]

    def decode(self, numbers: Sequence[int]) -> list[str]:
        """A sentence's labels from numbers, in the scheme of the training set."""
        inside = [self.names[number] for number in numbers]
        return convert(inside, self.scheme) if self.has_entities else inside

    def check(self, data: LabelledSentences, which: str) -> Counter[str]:
        """Refuse labels of another kind; count labels or entity types that did not occur in training."""
        given = Counter(label for row in data.labels for label in row)
        if self.has_entities:
            strange = next((label for label in given if not is_entity_label(label)), None)
            if strange is not None:
                raise InputError(
                    f"the {which} set has a label {strange!r}, but the tagger learned entities, like "
                    f"{self.names[1]}; is it another column?"
                )
            known = {name[2:] for name in self.names}
            types = Counter(span.type for row in data.labels for span in read_spans(row))
            return Counter({kind: count for kind, count in types.items() if kind not in known})
        unseen = Counter({label: count for label, count in given.items() if label not in self.names})
        if given and len(unseen) == len(given):
            raise InputError(
                f"the {which} set has none of the labels that the tagger learned ({', '.join(self.names[:5])}, ...), "
                f"but {next(iter(given))!r} and such; is it another column?"
            )
        return unseen
