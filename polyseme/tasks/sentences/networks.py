"""Networks for sentences and pairs: BiLSTM with attention pooling, logistic regression, and ESIM for pairs.

Shapes: B sentences or pairs, T words of the longest sentence, K labels or numbers, L layers, D dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.embedding.batching import batches
from polyseme.embedding.layers import Mix
from polyseme.errors import ConfigError
from polyseme.tasks.features.bilstm import BiLstmNetwork, BiLstmSettings, Where, make_bilstm, run_bilstm
from polyseme.tasks.features.mixing import Mixes, MixSettings
from polyseme.tasks.features.pooling import AttentionPool, align, max_pool, mean_pool
from polyseme.tasks.features.reader import WORD_BUDGET, FeatureBatch, FeatureReader
from polyseme.tasks.parameters import check_choice, check_range
from polyseme.tasks.sentences.data import ExampleSet
from polyseme.tasks.sentences.objective import ExampleNetwork


@dataclass(frozen=True)
class ClassifierSettings(BiLstmSettings):
    """Architecture of a classifier: a BiLSTM, attention pooling, and a hidden layer; or logistic regression.

    Attributes:
        kind: ``lstm`` is the BiLSTM, pooled by attention; ``linear`` is logistic regression on pooled vectors, which
            fits in seconds and uses only ``mix`` of the BiLSTM's settings.
        cells: LSTM cells of each direction of each layer.
        layers: Number of LSTM layers.
        hidden: Size of the layer before the labels, and of the attention.
        heads: Attention heads, each a weighted mean of the words.
    """

    kind: Literal["lstm", "linear"] = "lstm"
    cells: int = 150
    layers: int = 1
    hidden: int = 100
    heads: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "kind", ("lstm", "linear"))
        check_range(self, "hidden", 1, 1 << 16)
        check_range(self, "heads", 1, 100)
        if self.kind == "linear" and self.fine_tune:
            raise ConfigError(
                "the linear kind pools vectors once, so encoders cannot be fine-tuned with it; use kind lstm"
            )


class AttentionNetwork(BiLstmNetwork, ExampleNetwork):
    """Classifier network: a BiLSTM, pooled by attention and by maximum, to scores of labels."""

    def __init__(self, settings: ClassifierSettings, reader: FeatureReader, labels: int) -> None:
        super().__init__(settings, reader)
        self.attention = AttentionPool(self.dim, settings.hidden, settings.heads)
        self.hidden = nn.Linear(self.attention.dim + self.dim, settings.hidden)
        self.output = nn.Linear(settings.hidden, labels)

    def forward(self, inputs: FeatureBatch) -> Tensor:
        """The scores (B, K) of the labels."""
        words = self.read(inputs)
        pooled = torch.cat([self.attention(words, inputs.mask), max_pool(words, inputs.mask)], dim=1)
        return self.output(self.dropout(torch.relu(self.hidden(pooled))))


@dataclass(frozen=True)
class Pooled:
    """Pooled sentences, as logistic regression reads them: mean and maximum over the words."""

    layers: tuple[Tensor, ...]  # (B, L, 2, D) of each encoder
    words: Tensor | None  # (B, 2, D) static vectors

    def to(self, device: torch.device | str) -> Pooled:
        """The pooled sentences on another device."""
        words = None if self.words is None else self.words.to(device)
        return Pooled(tuple(layers.to(device) for layers in self.layers), words)

    def take(self, rows: Tensor) -> Pooled:
        """The pooled sentences of these rows."""
        return Pooled(tuple(layers[rows] for layers in self.layers), None if self.words is None else self.words[rows])


def pool_words(inputs: FeatureBatch) -> Pooled:
    """Mean and maximum pooling over the words, for every layer by itself."""
    layers = tuple(torch.stack([_pooled(each, inputs.mask) for each in part.unbind(1)], 1) for part in inputs.layers)
    return Pooled(layers, None if inputs.words is None else _pooled(inputs.words, inputs.mask))


class PooledSet:
    """A dataset whose sentences are pooled once, when it is made."""

    def __init__(self, data: ExampleSet) -> None:
        self.lengths = data.lengths
        groups = list(batches(data.lengths.tolist(), WORD_BUDGET))
        parts = [pool_words(data.batch(numbers).to("cpu")) for numbers in groups]
        places = torch.argsort(torch.tensor([number for numbers in groups for number in numbers]))
        layers = tuple(torch.cat(each) for each in zip(*(part.layers for part in parts), strict=True))
        words = None if parts[0].words is None else torch.cat([part.words for part in parts if part.words is not None])
        self.pooled = Pooled(layers, words).take(places)

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, numbers: Sequence[int] | np.ndarray) -> Pooled:
        """The pooled sentences of these numbers."""
        return self.pooled.take(torch.as_tensor(np.asarray(numbers)))


class LinearNetwork(ExampleNetwork):
    """Logistic regression on a mix of pooled layers, standardised as the training set was.

    Every dimension has mean 0 and variance 1 over the training set.
    """

    def __init__(self, settings: ClassifierSettings, reader: FeatureReader, labels: int) -> None:
        super().__init__()
        if not reader.shapes and not reader.words:
            raise ConfigError("the linear kind reads vectors, but there are none: give an encoder or word vectors")
        self.mixes = Mixes(reader.shapes, settings.mix) if reader.shapes else None
        self.scales = nn.ModuleList(_Standard((layers, 2, dim)) for layers, dim in reader.shapes)
        self.word_scale = _Standard((2, reader.words.dim)) if reader.words else None
        self.dropout = nn.Dropout(settings.mix.dropout)
        words = reader.words.dim if reader.words else 0
        self.output = nn.Linear(2 * (words + (self.mixes.dim if self.mixes else 0)), labels)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, inputs: FeatureBatch | Pooled) -> Tensor:
        """The scores (B, K) of the labels."""
        pooled = inputs if isinstance(inputs, Pooled) else pool_words(inputs)
        parts: list[Tensor] = []
        if self.mixes:
            layers = [scale(part) for scale, part in zip(self.scales, pooled.layers, strict=True)]
            both = torch.ones(len(layers[0]), 2, dtype=torch.bool, device=layers[0].device)
            parts.append(self.mixes(layers, both))
        if self.word_scale and pooled.words is not None:
            parts.append(self.dropout(self.word_scale(pooled.words)))
        return self.output(torch.cat(parts, dim=2).flatten(1))

    def measure(self, pooled: Pooled) -> None:
        """Take the mean and variance for standardisation from a training set."""
        for scale, part in zip(self.scales, pooled.layers, strict=True):
            scale.measure(part)  # pyright: ignore[reportCallIssue]
        if self.word_scale and pooled.words is not None:
            self.word_scale.measure(pooled.words)

    def penalty(self) -> Tensor | float:
        """The L2 penalty on the mixing weights."""
        return self.mixes.penalty() if self.mixes else 0.0

    def fitted_mixes(self) -> dict[str, list[Mix]]:
        """The learned layer weights of each encoder."""
        return {"pooled": self.mixes.fitted()} if self.mixes else {}


@dataclass(frozen=True)
class PairsSettings(BiLstmSettings):
    """Architecture of a pair model: a BiLSTM over both sentences, and ESIM's comparison layers.

    Attributes:
        answer: ``label`` for entailment or paraphrase, ``number`` for relatedness.
        where: Where the contextual vectors enter; sentences are aligned by the output vectors, so they belong there
            too.
        cells: LSTM cells of each direction of each layer, the composition layer included.
        layers: Number of LSTM layers before the comparison.
        dropout: On word vectors and spelling features, on the output of every LSTM layer, and between later layers.
        mix: How the encoders' layers are mixed.
        hidden: Size of the comparison, and of the layer before the answer.
    """

    answer: Literal["label", "number"] = "label"
    where: Where = "both"
    cells: int = 100
    layers: int = 1
    dropout: float = 0.2
    mix: MixSettings = field(default_factory=lambda: MixSettings(dropout=0.2))
    hidden: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "answer", ("label", "number"))
        check_range(self, "hidden", 1, 1 << 16)


class PairsNetwork(BiLstmNetwork, ExampleNetwork):
    """ESIM network for pairs: all first sentences and then all second ones to the outputs of the answer."""

    def __init__(self, settings: PairsSettings, reader: FeatureReader, answer: int) -> None:
        super().__init__(settings, reader)
        self.compare = nn.Linear(4 * self.dim, settings.hidden)
        self.second = make_bilstm(settings.hidden, settings.cells)
        self.hidden = nn.Linear(4 * 4 * settings.cells, settings.hidden)
        self.output = nn.Linear(settings.hidden, answer)

    def forward(self, inputs: FeatureBatch) -> Tensor:
        """The outputs (B, K): scores of labels, or one number."""
        words = self.read(inputs)
        one, other = words.chunk(2)
        aligned = torch.cat(align(one, other, inputs.mask.chunk(2)))  # pyright: ignore[reportArgumentType]
        compared = self.compare(torch.cat([words, aligned, words - aligned, words * aligned], dim=2))
        read = self.dropout(run_bilstm(self.second, self.dropout(torch.relu(compared)), inputs.lengths))
        first, second = torch.cat([mean_pool(read, inputs.mask), max_pool(read, inputs.mask)], dim=1).chunk(2)
        pooled = torch.cat([first, second, (first - second).abs(), first * second], dim=1)
        return self.output(self.dropout(torch.tanh(self.hidden(self.dropout(pooled)))))


class _Standard(nn.Module):
    """Standardisation: subtracts the mean, divides by the standard deviation."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("deviation", torch.ones(shape))

    def forward(self, values: Tensor) -> Tensor:
        return (values - self.mean) / self.deviation

    @torch.no_grad()
    def measure(self, values: Tensor) -> None:
        self.mean.copy_(values.mean(dim=0))
        self.deviation.copy_(values.std(dim=0, correction=0).clamp_min(1e-6))


def _pooled(vectors: Tensor, mask: Tensor) -> Tensor:
    return torch.stack([mean_pool(vectors, mask), max_pool(vectors, mask)], dim=1)
