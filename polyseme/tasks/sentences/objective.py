"""The training objective of classifiers and pair models, and batched prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.embedding.batching import batches
from polyseme.tasks.features.bilstm import learning_layers
from polyseme.tasks.features.mixing import TaskNetwork
from polyseme.tasks.features.reader import WORD_BUDGET, FeatureReader
from polyseme.tasks.fitting.loop import DevScore, FitSettings, length_batches
from polyseme.tasks.sentences.data import Examples
from polyseme.tasks.sentences.targets import Target


class ExampleNetwork(TaskNetwork):
    """Base of networks that give outputs (B, K) for a batch of B examples."""

    def penalty(self) -> Tensor | float:
        """The regularisation penalty of the loss."""
        return 0.0


class ExampleSource(Protocol):
    """A dataset of examples by number, as the network reads them."""

    lengths: np.ndarray

    def __len__(self) -> int: ...

    def batch(self, numbers: Sequence[int] | np.ndarray) -> Any:  # noqa: ANN401 - what the network reads
        """The batch of the examples of these numbers."""
        ...


class ExampleTask:
    """The training task of classifiers and pair models: a network, a training set, a dev set.

    Args:
        network: Gives outputs (B, K).
        reader: The reader that the sets were made with.
        target: What the outputs mean.
        sets: The training and dev set, each as a dataset and with its answers.
        settings: The training settings.
    """

    def __init__(
        self,
        network: ExampleNetwork,
        reader: FeatureReader,
        target: Target,
        sets: Sequence[tuple[ExampleSource, Examples]],
        settings: FitSettings,
    ) -> None:
        self._network, self.target, self.settings = network, target, settings
        (self.train_set, train), *self.dev = sets
        self._truth = target.encode(train.answers)
        self._layers = learning_layers(reader, train.examples[0][0])

    @property
    def network(self) -> ExampleNetwork:
        """The network that is trained."""
        return self._network

    def encoder_layers(self) -> list[list[nn.Parameter]]:
        """Weights of fine-tuned encoders, by layer from the bottom up."""
        return self._layers

    def batches(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Batches of numbers of examples of similar length."""
        return length_batches(self.train_set.lengths, self.settings.batch_size, rng)

    def loss(self, batch: np.ndarray) -> Tensor:
        """The training loss, with the penalty on mixing weights."""
        device = next(self._network.parameters()).device
        outputs = self._network(self.train_set.batch(batch).to(device))
        return self.target.loss(outputs, self._truth[batch].to(device)) + self._network.penalty()

    def score(self) -> DevScore | None:
        """Accuracy, or Pearson's correlation, on the dev set."""
        if not self.dev:
            return None
        data, dev = self.dev[0]
        predicted: list[Any] = self.target.decode(outputs_of_all(self._network, data))
        return self.target.compare(dev.answers, predicted).main


def outputs_of_all(network: ExampleNetwork, data: ExampleSource) -> np.ndarray:
    """The network's outputs (examples, K) for a whole dataset, in order."""
    found: dict[int, np.ndarray] = {}
    for numbers in batches(data.lengths.tolist(), WORD_BUDGET):
        found.update(zip(numbers, outputs_of(network, data.batch(numbers)), strict=True))
    return np.stack([found[number] for number in range(len(data))])


@torch.inference_mode()
def outputs_of(network: ExampleNetwork, inputs: Any) -> np.ndarray:  # noqa: ANN401 - what the network reads
    """The network's outputs (B, K) for a batch."""
    network.eval()
    return network(inputs.to(next(network.parameters()).device)).float().cpu().numpy()
