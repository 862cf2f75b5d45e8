"""How long a linear probe takes to fit, beside scikit-learn on the same features.

    python benchmarks/probe.py MODEL TRAIN.conllu TEST.conllu --layer 1 --words 200000 [--features f.npz] [--sklearn]

Vectors of real words, embedded first and kept in ``--features`` for the next run, so that only fitting is timed: the
labels of the ``upos`` column, and those of the control task. Accuracy is on the words of TEST.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import polyseme
from polyseme.analysis.layer_vectors import embed_labelled
from polyseme.analysis.layers.logistic_regression import LinearProblem
from polyseme.text.conll import LabelSpec, read_labelled


def features(model: str, files: list[Path], layer: int, words: int) -> dict[str, np.ndarray]:
    """Vectors and labels of so many words to learn from, and of all words to measure on."""
    embedder = polyseme.load(model)
    found: dict[str, np.ndarray] = {}
    for name, path in zip(("train", "test"), files, strict=True):
        part = embed_labelled(embedder, list(read_labelled(path, LabelSpec())), [layer])
        rows = slice(words if name == "train" else None)
        found |= {name: np.array(part.layers[0][rows]), f"{name}_labels": np.array(part.labels[rows])}
        found[f"{name}_words"] = np.array(part.words[rows])
    return found


def numbered(data: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """The true labels and the control task's as numbers: what to learn, and what is right."""
    names, train = np.unique(data["train_labels"], return_inverse=True)
    test = np.searchsorted(names, data["test_labels"]).clip(max=len(names) - 1)
    test[names[test] != data["test_labels"]] = -1
    distinct, every = np.unique([*data["train_words"], *data["test_words"]], return_inverse=True)
    lot = np.random.default_rng(0).choice(train, len(distinct))[every]
    return [("upos", train, test), ("control", lot[: len(train)], lot[len(train) :])]


def by_scikit_learn(data: dict[str, np.ndarray], labels: np.ndarray) -> tuple[np.ndarray, int]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(data["train"])
    found = LogisticRegression(max_iter=2000, tol=1e-4).fit(scaler.transform(data["train"]), labels)
    return found.predict(scaler.transform(data["test"])), int(found.n_iter_[0])


def tell(what: str, given: np.ndarray, right: np.ndarray, steps: int, seconds: float) -> None:
    print(f"{what:24}{100 * (given == right).mean():8.2f} %{steps:6} steps{seconds:8.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("files", type=Path, nargs=2)
    parser.add_argument("--layer", type=int, default=1)
    parser.add_argument("--words", type=int, default=200_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--features", type=Path, help="an .npz to keep them in")
    parser.add_argument("--sklearn", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.features and args.features.exists():
        data = dict(np.load(args.features))
    else:
        data = features(args.model, args.files, args.layer, args.words)
        if args.features:
            np.savez(args.features, **data)
    print(f"{data['train'].shape[0]:,} words of {data['train'].shape[1]} dimensions, {args.threads} threads")
    labels = numbered(data)[: 1 if args.sklearn else None]
    begun = time.perf_counter()
    problem = LinearProblem(data["train"])
    for name, train, test in labels:
        fitted = problem.fit(train)
        tell(f"here, {name}", fitted.predict(data["test"]), test, fitted.steps, time.perf_counter() - begun)
        begun = time.perf_counter()
        if args.sklearn:
            given, steps = by_scikit_learn(data, train)
            tell(f"scikit-learn, {name}", given, test, steps, time.perf_counter() - begun)


if __name__ == "__main__":
    main()
