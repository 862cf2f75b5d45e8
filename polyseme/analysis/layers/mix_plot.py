"""The layers that a task likes, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from polyseme.embedding.layers import Mix
from polyseme.plots import COLOURS, FAINT, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 12  # bars that have room for their numbers


def draw_mixes(mixes: Mapping[str, Mix], title: str = "the layers that the task likes") -> Figure:
    """Bars for the weights s of each mix, by layer, with γ in the legend; a line where all would be alike."""
    figure = new_figure(6.4, 4)
    axes = figure.subplots()
    deepest = max(len(mix.weights) for mix in mixes.values())
    width = 0.8 / len(mixes)
    for number, (name, mix) in enumerate(mixes.items()):
        places = [layer - 0.4 + (number + 0.5) * width for layer in range(len(mix.weights))]
        colour = COLOURS[number % len(COLOURS)]
        bars = axes.bar(places, mix.weights, width * 0.92, color=colour, label=f"{name} (γ = {mix.gamma:.2f})")
        if deepest * len(mixes) <= FEW:
            axes.bar_label(bars, fmt="%.2f", fontsize=8, padding=2)
    for number, layers in enumerate(sorted({len(mix.weights) for mix in mixes.values()})):
        axes.axhline(1 / layers, color=FAINT, linestyle=":", zorder=0.5, label=None if number else "all layers alike")
    axes.set_xticks(range(deepest), [str(layer) for layer in range(deepest)])
    axes.set_ylim(0, 1.15 * max(max(mix.weights) for mix in mixes.values()))
    figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    tidy(axes, title, "layer", "weight s")
    return figure
