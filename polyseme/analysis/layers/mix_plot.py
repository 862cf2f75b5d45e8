"""Plot of learned layer weights: how much a task takes from each layer (scalar mix)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from polyseme.embedding.layers import Mix
from polyseme.plots import COLOURS, FAINT, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 12  # bars up to which each shows its number


def draw_mixes(mixes: Mapping[str, Mix], title: str = "Learned layer weights") -> Figure:
    """Plot the weights s of each mix as bars by layer, with the scale γ in the legend and a line for equal weights."""
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
        axes.axhline(1 / layers, color=FAINT, linestyle=":", zorder=0.5, label=None if number else "equal weights")
    axes.set_xticks(range(deepest), [str(layer) for layer in range(deepest)])
    axes.set_ylim(0, 1.15 * max(max(mix.weights) for mix in mixes.values()))
    figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    tidy(axes, title, "layer", "weight s")
    return figure
