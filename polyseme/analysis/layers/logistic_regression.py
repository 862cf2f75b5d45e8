"""Multinomial logistic regression, for features that may be larger than the memory.

What is minimised is scikit-learn's objective on standardised features: the sum of the losses plus ``‖W‖² / 2C``, the
intercept free. Features of half a gigabyte and more are read and standardised a block at a time in each step, so they
may lie in a memory-mapped file. L-BFGS runs in coordinates in which a bound on the curvature (Böhning 1992) is round,
which changes how soon the minimum is found and not where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

BLOCK = 1 << 23  # numbers of a block of features, so 32 MiB
HELD = 1 << 27  # numbers that are held in memory when there are no more
SAMPLE = 4096  # rows that the curvature is judged by, and two more for each feature
_LITTLE = 1e-4
_FLAT = 1e-6  # a feature that varies less than this, beside its size, is a constant


class JoinedLayers:
    """Arrays (rows, dim) side by side, joined block by block as they are read."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._arrays = arrays
        self.shape = (arrays[0].shape[0], sum(array.shape[1] for array in arrays))

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.concatenate([array[rows] for array in self._arrays], axis=1)


Rows = np.ndarray | JoinedLayers  # features (rows, dim)


@dataclass(frozen=True)
class LinearFitSettings:
    """How a classifier is fitted.

    Attributes:
        inverse_penalty: scikit-learn's ``C``.
        iterations: At most so many steps.
        tolerance: Done when no component of the mean gradient is larger.
        device: Where to compute.
    """

    inverse_penalty: float = 1.0
    iterations: int = 300
    tolerance: float = 1e-4
    device: str = "cpu"


@dataclass(frozen=True)
class Standardization:
    """Mean and deviation of each feature, which are taken off and divided by."""

    mean: Tensor
    deviation: Tensor

    def blocks(self, features: Rows) -> Iterator[Tensor]:
        """The features, standardised, some rows at a time."""
        factor = 1 / self.deviation
        return ((block - self.mean).mul_(factor) for block in _blocks(features, self.mean.device))


@dataclass(frozen=True)
class LinearClassifier:
    """Weights (dim, classes) of standardised features, and intercepts (classes)."""

    standard: Standardization
    weights: Tensor
    intercept: Tensor
    steps: int

    def predict(self, features: Rows) -> np.ndarray:
        """The best class of each row."""
        scores = (torch.addmm(self.intercept, block, self.weights) for block in self.standard.blocks(features))
        best = [block.argmax(dim=1).cpu() for block in scores]
        return torch.cat(best).numpy() if best else np.zeros(0, dtype=np.int64)


class LinearProblem:
    """Features made ready for any number of fits: measured once, whatever the classes are."""

    def __init__(self, features: Rows, settings: LinearFitSettings | None = None) -> None:
        self.features = features
        self.settings = settings or LinearFitSettings()
        self.standard = _measure(features, torch.device(self.settings.device))
        self.penalty = 1 / (self.settings.inverse_penalty * max(1, features.shape[0]))
        small = features.shape[0] * features.shape[1] <= HELD
        self._held = list(self.standard.blocks(features)) if small else None
        self._root = _curvature_root(self._blocks(), features.shape, self.penalty)

    def fit(self, classes: np.ndarray) -> LinearClassifier:
        """Fit a classifier to the number of each row's class; the same input, the same weights."""
        root, settings = self._root, self.settings
        targets = torch.from_numpy(np.ascontiguousarray(classes)).to(root.device)
        free = torch.zeros(len(root) + 1, int(classes.max()) + 1, device=root.device, requires_grad=True)

        @torch.no_grad()
        def evaluate() -> float:
            weights = torch.linalg.solve_triangular(root.T, free[:-1], upper=True)
            loss, slope, slope_of_intercept = _loss(self._blocks(), targets, weights, free[-1])
            slope = torch.linalg.solve_triangular(root, slope + self.penalty * weights, upper=False)
            free.grad = torch.cat([slope, slope_of_intercept[None]])
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
        """The features, standardised, some rows at a time; read again each time when they are many."""
        return iter(self._held) if self._held is not None else self.standard.blocks(self.features)


def _loss(
    blocks: Iterator[Tensor], targets: Tensor, weights: Tensor, intercept: Tensor
) -> tuple[float, Tensor, Tensor]:
    """The mean loss, and its slope along weights and intercepts."""
    loss, done = 0.0, 0
    slope, slope_of_intercept = torch.zeros_like(weights), torch.zeros_like(intercept)
    for block in blocks:
        right = targets[done : done + len(block), None]
        done += len(block)
        scores = torch.log_softmax(torch.addmm(intercept, block, weights), dim=1)
        loss -= float(scores.gather(1, right).double().sum())
        errors = scores.exp_().scatter_add_(1, right, scores.new_full((len(block), 1), -1.0))
        slope.addmm_(block.T, errors)
        slope_of_intercept += errors.sum(dim=0)
    return loss / done, slope / done, slope_of_intercept / done


def _measure(features: Rows, device: torch.device) -> Standardization:
    """A feature that never varies is left as wide as it is."""
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


def _curvature_root(blocks: Iterator[Tensor], shape: tuple[int, ...], penalty: float) -> Tensor:
    """The Cholesky factor of a bound on the curvature along the weights, judged by some rows.

    The bound is half the covariance of the features, plus the penalty, plus a little against too few rows.
    """
    rows, dim = shape
    stride = max(1, rows // (SAMPLE + 2 * dim))
    covariance, seen = None, 0
    for block in blocks:
        some = block[::stride]
        covariance = some.T @ some if covariance is None else covariance.addmm_(some.T, some)
        seen += len(some)
    assert covariance is not None, "there are rows"
    curvature = covariance.double() / (2 * seen)
    curvature.diagonal().add_(penalty + _LITTLE)
    return torch.linalg.cholesky(curvature).float()


def _blocks(features: Rows, device: torch.device) -> Iterator[Tensor]:
    rows, dim = features.shape
    step = max(1, BLOCK // max(dim, 1))
    for first in range(0, rows, step):
        block = np.ascontiguousarray(features[first : first + step], dtype=np.float32)
        yield torch.from_numpy(block).to(device)
