"""Multinomial logistic regression by L-BFGS, for features that may be larger than memory.

It minimises scikit-learn's objective on standardised features: the sum of the losses plus ``‖W‖² / 2C``, the intercept
not penalised. Features of half a gigabyte and more are read and standardised block by block in each step, so they may
lie in a memory-mapped file. A bound on the Hessian (Böhning 1992) preconditions L-BFGS, which changes how fast it
converges and not where to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

BLOCK = 1 << 23  # numbers in a block of features: 32 MiB
HELD = 1 << 27  # numbers up to which all features are held in memory
SAMPLE = 4096  # rows from which the Hessian is estimated, and two more for each feature
_DAMPING = 1e-4  # added to the diagonal of the Hessian, against too few rows
_FLAT = 1e-6  # a feature that varies less than this, beside its size, is a constant


class JoinedLayers:
    """Several layers (rows, dim) concatenated along the features, block by block as they are read."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._arrays = arrays
        self.shape = (arrays[0].shape[0], sum(array.shape[1] for array in arrays))

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.concatenate([array[rows] for array in self._arrays], axis=1)


Rows = np.ndarray | JoinedLayers  # features (rows, dim)


@dataclass(frozen=True)
class LinearFitSettings:
    """Settings of the L-BFGS fit of a linear classifier.

    Attributes:
        inverse_penalty: scikit-learn's ``C``.
        iterations: Maximum number of steps.
        tolerance: Converged when no component of the mean gradient is larger.
        device: Device to compute on.
    """

    inverse_penalty: float = 1.0
    iterations: int = 300
    tolerance: float = 1e-4
    device: str = "cpu"


@dataclass(frozen=True)
class Standardization:
    """Standardization of features: the mean and standard deviation of each."""

    mean: Tensor
    deviation: Tensor

    def blocks(self, features: Rows) -> Iterator[Tensor]:
        """The standardised features, a block of rows at a time."""
        factor = 1 / self.deviation
        return ((block - self.mean).mul_(factor) for block in _blocks(features, self.mean.device))


@dataclass(frozen=True)
class LinearClassifier:
    """A fitted linear classifier: weights (dim, classes) of standardised features, intercepts (classes)."""

    standard: Standardization
    weights: Tensor
    intercept: Tensor
    steps: int

    def predict(self, features: Rows) -> np.ndarray:
        """Predict the class of each row of features."""
        scores = (torch.addmm(self.intercept, block, self.weights) for block in self.standard.blocks(features))
        best = [block.argmax(dim=1).cpu() for block in scores]
        return torch.cat(best).numpy() if best else np.zeros(0, dtype=np.int64)


class LinearProblem:
    """Logistic regression on given features: standardised and preconditioned once, for any number of fits."""

    def __init__(self, features: Rows, settings: LinearFitSettings | None = None) -> None:
        self.features = features
        self.settings = settings or LinearFitSettings()
        self.standard = _standardization(features, torch.device(self.settings.device))
        self.penalty = 1 / (self.settings.inverse_penalty * max(1, features.shape[0]))
        small = features.shape[0] * features.shape[1] <= HELD
        self._held = list(self.standard.blocks(features)) if small else None
        self._root = _preconditioner(self._blocks(), features.shape, self.penalty)

    def fit(self, classes: np.ndarray) -> LinearClassifier:
        """Fit a classifier to the class number of each row; deterministic."""
        root, settings = self._root, self.settings
        targets = torch.from_numpy(np.ascontiguousarray(classes)).to(root.device)
        free = torch.zeros(len(root) + 1, int(classes.max()) + 1, device=root.device, requires_grad=True)

        @torch.no_grad()
        def evaluate() -> float:
            weights = torch.linalg.solve_triangular(root.T, free[:-1], upper=True)
            loss, gradient, intercept_gradient = _loss(self._blocks(), targets, weights, free[-1])
            gradient = torch.linalg.solve_triangular(root, gradient + self.penalty * weights, upper=False)
            free.grad = torch.cat([gradient, intercept_gradient[None]])
            return loss + 0.5 * self.penalty * float(weights.double().square().sum())

        optimiser = torch.optim.LBFGS(
            [free],
            max_iter=settings.iterations,
            max_eval=2 * settings.iterations,
            tolerance_grad=settings.tolerance,
            tolerance_change=1e-9,
            history_size=20,
            line_search_fn="strong_wolfe",
        )
        optimiser.step(evaluate)
        weights = torch.linalg.solve_triangular(root.T, free[:-1], upper=True).detach()
        return LinearClassifier(self.standard, weights, free[-1].detach(), optimiser.state[free]["n_iter"])

    def _blocks(self) -> Iterator[Tensor]:
        """The standardised features in blocks, held in memory if small, else read again each time."""
        return iter(self._held) if self._held is not None else self.standard.blocks(self.features)


def _loss(
    blocks: Iterator[Tensor], targets: Tensor, weights: Tensor, intercept: Tensor
) -> tuple[float, Tensor, Tensor]:
    """The mean cross-entropy loss, and its gradient by weights and intercepts."""
    loss, done = 0.0, 0
    gradient, intercept_gradient = torch.zeros_like(weights), torch.zeros_like(intercept)
    for block in blocks:
        right = targets[done : done + len(block), None]
        done += len(block)
        scores = torch.log_softmax(torch.addmm(intercept, block, weights), dim=1)
        loss -= float(scores.gather(1, right).double().sum())
        errors = scores.exp_().scatter_add_(1, right, scores.new_full((len(block), 1), -1.0))
        gradient.addmm_(block.T, errors)
        intercept_gradient += errors.sum(dim=0)
    return loss / done, gradient / done, intercept_gradient / done


def _standardization(features: Rows, device: torch.device) -> Standardization:
    """Mean and standard deviation of each feature; a constant feature is not scaled."""
    rows, dim = features.shape
    total, squares = (torch.zeros(dim, dtype=torch.float64, device=device) for _ in range(2))
    for block in _blocks(features, device):
        total += block.sum(dim=0, dtype=torch.float64)
    mean = total / rows
    for block in _blocks(features, device):
        squares += (block - mean.float()).square_().sum(dim=0, dtype=torch.float64)
    deviation = (squares / rows).sqrt()
    flat = deviation <= _FLAT * mean.abs().clamp(min=_FLAT)
    return Standardization(mean.float(), torch.where(flat, torch.ones_like(deviation), deviation).float())


def _preconditioner(blocks: Iterator[Tensor], shape: tuple[int, ...], penalty: float) -> Tensor:
    """The Cholesky factor of a bound on the Hessian, estimated from a sample of rows.

    The bound is half the covariance of the features, plus the penalty and a damping.
    """
    rows, dim = shape
    stride = max(1, rows // (SAMPLE + 2 * dim))
    covariance, seen = None, 0
    for block in blocks:
        some = block[::stride]
        covariance = some.T @ some if covariance is None else covariance.addmm_(some.T, some)
        seen += len(some)
    assert covariance is not None, "there are rows"
    hessian = covariance.double() / (2 * seen)
    hessian.diagonal().add_(penalty + _DAMPING)
    return torch.linalg.cholesky(hessian).float()


def _blocks(features: Rows, device: torch.device) -> Iterator[Tensor]:
    rows, dim = features.shape
    step = max(1, BLOCK // max(dim, 1))
    for first in range(0, rows, step):
        block = np.ascontiguousarray(features[first : first + step], dtype=np.float32)
        yield torch.from_numpy(block).to(device)
