"""Little languages for tasks to learn: who lives where, in made-up names; what people think of a film."""

import numpy as np

NAMES, PLACES = ("Ada", "Bob", "Cleo", "Dan"), ("Rome", "Oslo", "Lima")


def people(count, seed=0):
    """Sentences, and labels in IOB2 of the persons and places in them."""
    random = np.random.default_rng(seed)
    sentences, labels = [], []
    for _ in range(count):
        name, place = random.choice(NAMES), random.choice(PLACES)
        if random.random() < 0.5:
            sentences.append([name, "Smith", "lives", "in", place, "."])
            labels.append(["B-PER", "I-PER", "O", "O", "B-LOC", "O"])
        else:
            sentences.append(["in", place, ",", name, "waits"])
            labels.append(["O", "B-LOC", "O", "B-PER", "O"])
    return sentences, labels


def opinions(count, seed=0):
    """Sentences, and whether they praise, blame, or do neither."""
    random = np.random.default_rng(seed)
    said = {"good": ("lovely", "fine"), "bad": ("dull", "awful"), "none": ("long", "new")}
    labels = random.choice(list(said), count).tolist()
    sentences = [
        ["the", random.choice(("film", "play", "book")), "was", random.choice(said[label]), *[","] * random.integers(3)]
        for label in labels
    ]
    return [[str(word) for word in words] for words in sentences], labels


def claims(count, seed=0):
    """Pairs of sentences, and whether the second says where somebody of the first lives."""
    random = np.random.default_rng(seed)
    pairs, labels = [], []
    for _ in range(count):
        name, place, other = random.choice(NAMES), *random.choice(PLACES, 2, replace=False)
        same = random.random() < 0.5
        pairs.append(([name, "lives", "in", place], [name, "is", "from", place if same else other, "."]))
        labels.append("yes" if same else "no")
    return [tuple([str(word) for word in words] for words in pair) for pair in pairs], labels
