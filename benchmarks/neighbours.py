"""Which vectors find uses of the same sense: layers, centred or not, with principal components removed.

    python benchmarks/neighbours.py semcor.jsonl.xz --words 100

For words of SemCor with several senses, each tagged use is a query among the other uses of the same word. A row gives
the share of nearest uses, and of the five nearest, that have the query's sense; the mean over words. Means and
components are those of the sentences that come with the package.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import polyseme
from polyseme.corpus.uses import bundled_sentences
from polyseme.embedding.similarity import unit

Tagged = tuple[int, int, str]  # sentence, place, sense
Words = dict[str, tuple[np.ndarray, np.ndarray]]  # word: vectors (uses, layers, dim) and senses
MOST_WORDS, MOST_USES, NEAREST = 40, 24, 5


def read_semcor(path: Path) -> tuple[list[list[str]], dict[str, list[Tagged]]]:
    """Sentences, and for each word as written (case ignored) its tagged uses; multiword units are split."""
    sentences, uses = [], defaultdict(list)
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    for entry in entries:
        pieces = [token.split("_") if len(token) > 1 else [token] for token in entry["tokens"]]
        starts = np.cumsum([0, *map(len, pieces)])
        sentences.append([word for piece in pieces for word in piece])
        for sense in entry["senses"] if len(sentences[-1]) <= MOST_WORDS else ():
            if len(pieces[sense["i"]]) == 1 and sense.get("n", 1) == 1 and sense.get("ok", True):
                word = pieces[sense["i"]][0].casefold()
                uses[word].append((len(sentences) - 1, int(starts[sense["i"]]), sense["key"]))
    return sentences, uses


def ambiguous(tagged: list[Tagged]) -> bool:
    """Twenty uses or more, two senses of six or more, none of more than three quarters."""
    counts = Counter(sense for *_, sense in tagged).most_common()
    return len(tagged) >= 20 and sum(n >= 6 for _, n in counts) >= 2 and counts[0][1] <= 0.75 * len(tagged)


def embed(path: Path, count: int) -> Words:
    """The vectors of the uses of some words, chosen at random."""
    sentences, uses = read_semcor(path)
    rng = random.Random(0)
    candidates = sorted(word for word, tagged in uses.items() if ambiguous(tagged))
    rng.shuffle(candidates)
    chosen = {word: rng.sample(uses[word], min(MOST_USES, len(uses[word]))) for word in sorted(candidates[:count])}
    needed = sorted({number for tagged in chosen.values() for number, *_ in tagged})
    elmo = polyseme.load(precision="int8")
    found = dict(zip(needed, elmo.embed(sentences[number] for number in needed), strict=True))
    return {
        word: (np.stack([found[n][:, place] for n, place, _ in tagged]), np.array([sense for *_, sense in tagged]))
        for word, tagged in chosen.items()
    }


def ways() -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    """Names, and what turns (uses, layers, dim) into vectors to compare."""
    background = np.concatenate(list(polyseme.load(precision="int8").embed(bundled_sentences())), axis=1)
    mean, spread = background.mean(axis=1), background.std(axis=1)
    for layer in range(len(background)):
        yield f"layer {layer}", lambda v, n=layer: v[:, n]
    yield "average", lambda v: v.mean(axis=1)
    yield "layers 1 and 2 joined", lambda v: np.concatenate([unit(v[:, 1]), unit(v[:, 2])], axis=1)
    for layer in (1, 2):
        directions = np.linalg.svd(background[layer] - mean[layer], full_matrices=False)[2]
        yield f"layer {layer}, centred", lambda v, n=layer: v[:, n] - mean[n]
        yield f"layer {layer}, standardised", lambda v, n=layer: (v[:, n] - mean[n]) / spread[n]
        for removed in (2, 8, 32):
            yield f"layer {layer}, less {removed} components", _remover(layer, mean[layer], directions[:removed])
        yield f"layer {layer}, less the word's mean", lambda v, n=layer: v[:, n] - v[:, n].mean(axis=0)


def _remover(layer: int, mean: np.ndarray, directions: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    def remove(vectors: np.ndarray) -> np.ndarray:
        centred = vectors[:, layer] - mean
        return centred - centred @ directions.T @ directions

    return remove


def precision(words: Words, way: Callable[[np.ndarray], np.ndarray]) -> tuple[float, float]:
    """Share of the nearest, and of the five nearest, that have the query's sense."""
    first, several = [], []
    for vectors, senses in words.values():
        cosines = unit(way(vectors)) @ unit(way(vectors)).T
        np.fill_diagonal(cosines, -2)
        same = senses[np.argsort(-cosines, axis=1)[:, :NEAREST]] == senses[:, None]
        first.append(same[:, 0].mean())
        several.append(same.mean())
    return float(np.mean(first)), float(np.mean(several))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("semcor", type=Path)
    parser.add_argument("--words", type=int, default=100)
    args = parser.parse_args()
    words = embed(args.semcor, args.words)
    print("| | nearest | five nearest |\n|---|---|---|")
    for name, way in ways():
        print(f"| {name} | {' | '.join(f'{100 * share:.1f}' for share in precision(words, way))} |")


if __name__ == "__main__":
    main()
