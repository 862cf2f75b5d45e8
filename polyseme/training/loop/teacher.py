"""Knowledge distillation: a second training loss, the cosine distance to the word vectors of a teacher model.

A linear map of a layer, both directions joined, is to point where a layer of the teacher points for the same word in
the same sentence. The maps are trained along and thrown away at the end; the model that is saved has no trace of them.

Shapes: W words, K pairs of layers, P dim of a direction, D dim of the teacher.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.embedding.encoder import Encoder
from polyseme.errors import ConfigError
from polyseme.model.config import LstmConfig
from polyseme.training.settings import TeacherSettings

LayerPairs = tuple[tuple[int, int], ...]


class Teacher:
    """A teacher model: gives the vectors that words are to have, in the layers that teach.

    Args:
        encoder: Any encoder: a transformer, an ELMo model, static vectors. Its weights stay as they are.
        layers: The layers of it that teach.
        device: Device to compute on.
    """

    def __init__(self, encoder: Encoder, layers: Sequence[int], device: torch.device) -> None:
        self._encoder = encoder.to(device).eval()
        self._layers = torch.tensor(list(layers), device=device)
        self._device = device

    @torch.no_grad()
    def vectors(self, sentences: list[list[str]]) -> Tensor:
        """Vectors (K, W, D) of all words, sentence after sentence."""
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._device.type == "cuda"):
            layers, mask = self._encoder(self._encoder.collate(sentences).to(self._device))
        return layers[:, self._layers].transpose(0, 1)[:, mask].float()


class TeacherLoss(nn.Module):
    """Cosine distance between linear maps of a model's layers and a teacher's layers.

    Args:
        dim: Dimensions of a layer, both directions joined.
        teacher_dim: Dimensions of the teacher's vectors.
        pairs: Which layer of the model learns from which layer of the teacher.
        weight: Weight of the distance, summed over the pairs, beside a nat of the language model's loss.
    """

    def __init__(self, dim: int, teacher_dim: int, pairs: LayerPairs, weight: float) -> None:
        super().__init__()
        self._pairs, self._weight = pairs, weight
        self.maps = nn.ModuleList(nn.Linear(dim, teacher_dim) for _ in pairs)

    def forward(self, vectors: Sequence[Tensor], lessons: Tensor) -> Tensor:
        """Cosine distance (K,) of the maps of vectors (W, 2P), one for each pair, to lessons (K, W, D)."""
        mapped = torch.stack([to(each.float()) for to, each in zip(self.maps, vectors, strict=True)])
        return 1 - F.cosine_similarity(mapped, lessons, dim=-1).mean(dim=1)

    def gradients(
        self, layers: Sequence[Sequence[Tensor]], places: Tensor, lessons: Tensor, scale: float
    ) -> tuple[Tensor, list[tuple[list[Tensor], list[Tensor]]]]:
        """Mean distance, and for each direction the layers that learn with the gradient of each.

        Gradients of the maps go into their ``.grad``, as all of them multiplied by weight and scale.

        Args:
            layers: The layers (T, B, P) of each direction.
            places: Where (2, W) the words are among the T * B outputs of a direction.
            lessons: The teacher's vectors (K, W, D).
            scale: What the gradients are multiplied by.
        """
        if not places.shape[1]:
            for parameter in self.parameters():
                parameter.grad = torch.zeros_like(parameter)
            return lessons.new_zeros(()), [([], []) for _ in layers]
        taught = [[of_direction[own] for own, _ in self._pairs] for of_direction in layers]
        leaves = [[layer.detach().requires_grad_() for layer in of_direction] for of_direction in taught]
        picked = [
            [leaf.flatten(0, 1)[where] for leaf in of_direction]
            for of_direction, where in zip(leaves, places, strict=True)
        ]
        distances = self([torch.cat(halves, dim=1) for halves in zip(*picked, strict=True)], lessons)
        (distances.sum() * (self._weight * scale)).backward()
        gradients = [[leaf.grad for leaf in of_direction] for of_direction in leaves]
        return distances.mean().detach(), list(zip(taught, gradients, strict=True))  # pyright: ignore[reportReturnType]


def pair_layers(settings: TeacherSettings, own_layers: int, teacher_layers: int) -> LayerPairs:
    """The layers that learn, each with the layer that teaches it; layer 0 is without context in both models.

    Without a choice the LSTM layers learn from layers spread over the teacher's depth: two of them from its middle and
    from five sixths of it. The very last layers of a transformer serve its own training task more than its words.
    """
    depth, highest = teacher_layers - 1, own_layers - 1
    pairs = settings.layers
    if pairs is None:
        shares = [(1 / 2) + (1 / 3) * (own - 1) / max(1, highest - 1) for own in range(1, own_layers)]
        pairs = tuple((own, round(share * depth)) for own, share in enumerate(shares, start=1))
    for own, other in pairs:
        if not (0 <= own <= highest and 0 <= other <= depth):
            raise ConfigError(
                f"teacher.layers pairs layer {own} with layer {other} of the teacher; the model has layers 0 to "
                f"{highest}, the teacher 0 to {depth}"
            )
    return pairs


def make_teacher(
    encoder: Encoder, settings: TeacherSettings, lstm: LstmConfig, device: torch.device, processes: int = 1
) -> tuple[Teacher, TeacherLoss]:
    """The teacher and the loss against its vectors; gradients are summed over so many processes."""
    pairs = pair_layers(settings, lstm.num_layers + 1, encoder.num_layers)
    loss = TeacherLoss(2 * lstm.dim, encoder.dim, pairs, settings.weight / processes)
    return Teacher(encoder, [other for _, other in pairs], device), loss.to(device)
