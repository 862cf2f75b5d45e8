"""Words per second on a GPU, everything from words to arrays counted.

    python benchmarks/gpu.py TEXT [--words 5000000] [--sizes small,original] [--json FILE]

TEXT holds one tokenised sentence a line (.gz opens too). Weights are random, of the published sizes, with the published
clips. The word cache is cold at the start of every run. Differences are those from the same model on the CPU in
32 bits, on the first 200 sentences; memory is the most that torch held on the device.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.embedding.interfaces import EmbedSettings
from polyseme.model import BiLM, config
from polyseme.text.word_encoder import ByteCharacters, WordEncoder

RUNS = [
    ("float32", "float32"),
    ("tf32", "float32"),
    ("bfloat16", "float16"),
    ("float16", "float32"),
    ("float16", "float16"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("--words", type=int, default=5_000_000)
    parser.add_argument("--sizes", default="small,original")
    parser.add_argument("--budgets", default="0", help="words at a time, comma-separated; 0 for the default")
    parser.add_argument("--runs", type=int, default=len(RUNS), help="how many of the precisions, from the last")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sentences = read(options.text, options.words)
    total = sum(map(len, sentences))
    gc.freeze()  # the collector shall not walk over the text again and again: it is the benchmark's, not the user's
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; {total:,} words, {len(sentences):,} sentences")
    rows = []
    for size in options.sizes.split(","):
        encoder = make(size)
        exact = list(encoder.embed(sentences[:200]))
        encoder.to("cuda")
        for precision, dtype in RUNS[-options.runs :]:
            for budget in map(int, options.budgets.split(",")):
                encoder.settings = EmbedSettings(precision=precision, dtype=dtype, word_budget=budget or None)
                rows.append(
                    {"size": size, "precision": precision, "arrays": dtype, **measure(encoder, sentences, exact)}
                )
                print(" ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))


def read(path: Path, limit: int) -> list[list[str]]:
    sentences, total = [], 0
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            sentences.append(line.split())
            total += len(sentences[-1])
            if total >= limit:
                break
    return sentences


def make(size: str) -> ElmoEncoder:
    torch.manual_seed(0)
    settings = getattr(config, size)()
    return ElmoEncoder(BiLM(settings).eval(), WordEncoder(ByteCharacters(settings.input.characters.max_characters)))


def measure(encoder: ElmoEncoder, sentences: list[list[str]], exact: list[np.ndarray]) -> dict[str, object]:
    near = list(encoder.embed(sentences[:200]))
    largest = max(np.abs(one - other).max() for one, other in zip(near, exact, strict=True))
    layers = [np.concatenate([vectors[layer] for vectors in side]) for side in (near, exact) for layer in range(3)]
    cosines = [cosine(layers[layer], layers[layer + 3]) for layer in range(3)]
    lag = latency(encoder, sentences)
    list(encoder.embed(sentences[:20000]))  # kernels are chosen and compiled
    encoder.settings = EmbedSettings(
        **{**vars(encoder.settings), "cache_words": 250_001}
    )  # prepared anew: a cold cache
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    start, total = time.perf_counter(), 0
    for vectors in encoder.embed(sentences):
        total += vectors.shape[1]
    seconds = time.perf_counter() - start
    return {
        "budget": encoder.word_budget,
        "words/s": round(total / seconds),
        "seconds": round(seconds, 2),
        "hit rate": round(encoder.cache_report.hit_rate, 4),
        "largest difference": float(f"{largest:.2g}"),
        "mean cosine": [round(value, 6) for value in cosines],
        "ms a sentence of 20": lag,
        "GiB": round(torch.cuda.max_memory_allocated() / 2**30, 2),
    }


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    one, other = one.astype(np.float64), other.astype(np.float64)
    return float(((one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)).mean())


def latency(encoder: ElmoEncoder, sentences: list[list[str]]) -> float:
    """Median milliseconds for one sentence of 20 words at a time, words seen before."""
    twenty = [words for words in sentences[:5000] if len(words) == 20][:60]
    list(encoder.embed(twenty))
    times = []
    for words in twenty:
        start = time.perf_counter()
        list(encoder.embed([words]))
        times.append(1000 * (time.perf_counter() - start))
    return round(statistics.median(times), 3)


if __name__ == "__main__":
    main()
