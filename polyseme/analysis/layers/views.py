"""Layers one at a time: what an instrument has a row of its table for."""

from __future__ import annotations

import numpy as np

from polyseme.embedding.layers import LayerChoice, Mix, choose


def views(choice: LayerChoice, num_layers: int) -> tuple[LayerChoice, ...]:
    """Each layer for ``all``, else the one choice; refused when the model does not have it."""
    if choice == "all":
        return tuple(range(num_layers))
    choose(np.zeros((num_layers, 0, 1), dtype=np.float32), choice)
    return (choice,)


def view_name(choice: LayerChoice) -> int | str:
    """A layer's number, or what a mixture of layers is called."""
    return str(choice) if isinstance(choice, Mix) else choice


def view_dim(choice: LayerChoice, num_layers: int, dim: int) -> int:
    """Numbers in a vector of that choice; some join several layers."""
    return choose(np.zeros((num_layers, 1, dim), dtype=np.float32), choice).shape[-1]
