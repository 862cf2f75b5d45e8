"""Fine-tuning on the spot: the same tagger on the frozen model, and trained on together with a copy of the model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.embedding.encoder import Encoder
from polyseme.errors import ConfigError
from polyseme.report.measure.fits.window_tagger import WindowRows, WindowTagger, fit_window_tagger
from polyseme.report.measure.fits.word_tasks import EWT, OUTSIDE, TASKS, count_correct, read_sample
from polyseme.report.measure.measurement import Measurement, Results, SampleSizes
from polyseme.report.measure.model_under_test import EvaluationData, ModelUnderTest
from polyseme.report.measure.names import f1
from polyseme.report.measure.probing import WordLabels, embed_words, words_and_labels
from polyseme.report.measure.statistics import bootstrap_difference

TASK = TASKS["task-roles"]
BATCH = 16  # sentences
ENCODER_RATE, RATE = 2e-4, 1e-3  # Adam's, for the model and for the tagger
CLIP = 5.0
TEST_FACTOR = 7  # test sentences for each one that is learned from: the difference is small


def measure_tuning(model: ModelUnderTest, data: EvaluationData, sizes: SampleSizes) -> Results:
    """Accuracy with the frozen and with the fine-tuned model, and a bootstrap interval of the difference.

    The tagger is fitted to the frozen model first. Fine-tuning starts from there and trains the tagger together with
    the layers of the model that read the sentence.
    """
    if model.encoder.num_layers < 2:
        raise ConfigError("This model has a single layer: a table of vectors, which is not trained further here.")
    (words, labels), (test_words, gold) = (
        words_and_labels(read_sample(data, TASK, part, size))
        for part, size in ((0, sizes.tuned), (1, TEST_FACTOR * sizes.tuned))
    )
    encoder = copy.deepcopy(model.encoder)
    names = sorted({label or OUTSIDE for label in chain.from_iterable(labels)})
    rows = WindowRows.of(embed_words(encoder, words).layers, list(map(len, words)))
    tagger = fit_window_tagger(rows, _classes(labels, names), len(names), sizes.fit_steps)
    frozen = count_correct(_tag(encoder, tagger, test_words, names), gold, TASK.score)
    _train(encoder, tagger, words, [_classes([row], names) for row in labels], sizes)
    tuned = count_correct(_tag(encoder, tagger, test_words, names), gold, TASK.score)
    return {
        "title": TASK.title,
        "train": len(words),
        "test": len(test_words),
        "epochs": sizes.tuning_epochs,
        "score": {"frozen": 100 * f1(frozen), "tuned": 100 * f1(tuned)},
        "difference": bootstrap_difference(
            lambda drawn: 100 * (f1(tuned[drawn]) - f1(frozen[drawn])), len(test_words), sizes.seed
        ),
    }


TUNING = Measurement("fine-tuning", measure_tuning, EWT, ("tuned", "fit_steps", "tuning_epochs", "seed"))


def _train(
    encoder: Encoder, tagger: WindowTagger, words: list[list[str]], classes: list[Tensor], sizes: SampleSizes
) -> None:
    encoder.requires_grad_(True)
    if isinstance(encoder, ElmoEncoder):
        encoder.bilm.inputs.requires_grad_(False)  # the character convolution costs most and reads no sentence
    own = [weight for weight in encoder.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam([{"params": own, "lr": ENCODER_RATE}, {"params": tagger.parameters(), "lr": RATE}])
    weights = [*own, *tagger.parameters()]
    rng = np.random.default_rng(sizes.seed)
    for _ in range(sizes.tuning_epochs):
        for batch in np.array_split(rng.permutation(len(words)), max(1, len(words) // BATCH)):
            optimizer.zero_grad()
            loss = tagger.loss(
                _rows(encoder, [words[number] for number in batch]), torch.cat([classes[number] for number in batch])
            )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, CLIP)
            optimizer.step()
    encoder.requires_grad_(False)


def _rows(encoder: Encoder, sentences: Sequence[Sequence[str]]) -> WindowRows:
    layers, mask = encoder(encoder.collate(sentences).to(encoder.device))  # (B, L, T, D) and (B, T)
    return WindowRows.of(layers.transpose(1, 2)[mask].transpose(0, 1).cpu(), list(map(len, sentences)))


def _tag(encoder: Encoder, tagger: WindowTagger, sentences: Sequence[Sequence[str]], names: Sequence[str]) -> list[str]:
    rows = WindowRows.of(embed_words(encoder, sentences).layers, list(map(len, sentences)))
    with torch.inference_mode():
        return [names[int(number)] for number in tagger(rows).argmax(dim=1).tolist()]


def _classes(labels: WordLabels, names: Sequence[str]) -> Tensor:
    return torch.tensor([names.index(label or OUTSIDE) for label in chain.from_iterable(labels)])
