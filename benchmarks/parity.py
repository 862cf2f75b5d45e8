"""How far our vectors are from a peer's, and a sentence's from its own in other company.

    python benchmarks/parity.py MODEL SENTENCES EXPECTED.npz

SENTENCES holds one sentence a line, words apart by spaces; EXPECTED.npz the peer's vectors (layers, words, dim) of each
line under its number, from a fresh state. Prints the largest difference layer by layer, then those between a sentence
alone, in another order and under other budgets, and the speed.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import numpy as np
import torch

import polyseme


def largest(pairs) -> float:
    return max((float(np.abs(one - other).max()) for one, other in pairs if one.size), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("sentences", type=Path)
    parser.add_argument("expected", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sample", type=int, default=60, help="sentences that are embedded again in other company")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    sentences = [line.split() for line in args.sentences.read_text("utf-8").splitlines() if line.strip()]
    encoder = polyseme.load(args.model)
    begun = time.perf_counter()
    vectors = list(encoder.embed(sentences))
    seconds = time.perf_counter() - begun
    words = sum(map(len, sentences))
    print(f"{words:,} words, {words / seconds:,.0f} words/s, largest value {max(np.abs(v).max() for v in vectors):.2f}")
    with np.load(args.expected) as expected:
        for layer in range(encoder.num_layers):
            pairs = ((v[layer], expected[str(number)][layer]) for number, v in enumerate(vectors))
            print(f"layer {layer}: largest difference from the peer {largest(pairs):.2e}")
    sample = random.Random(0).sample(range(len(sentences)), min(args.sample, len(sentences)))
    alone = ((next(encoder.embed([sentences[number]])), vectors[number]) for number in sample)
    print(f"alone: {largest(alone):.2e}")
    for budget in (64, 300, 5000):
        other = polyseme.load(args.model, word_budget=budget)
        again = zip(other.embed([sentences[number] for number in sample]), sample, strict=True)
        print(f"another order, {budget} words at a time: {largest((v, vectors[n]) for v, n in again):.2e}")


if __name__ == "__main__":
    main()
