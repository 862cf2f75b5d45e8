"""Learning curves of a run: perplexity over tokens, drawn with matplotlib."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any


def draw_curves(
    curve: Sequence[tuple[int, float]], evaluations: Sequence[Mapping[str, Any]], loss: str
) -> bytes | None:
    """Draw the learning curves as a PNG; None where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter, LogFormatter, ScalarFormatter
    except ImportError:
        return None
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    if curve:
        tokens, losses = zip(*curve, strict=True)
        label = f"training text ({loss} softmax, dropout on)"
        axes.plot(tokens, [math.exp(min(value, 50)) for value in losses], color="0.7", linewidth=1, label=label)
    held_out = [each for each in evaluations if each["text"] == "held-out"]
    kinds = (("fresh", "held-out, sentence by sentence", 4), ("carried", "held-out, state carried", -12))
    for name, label, above in kinds:
        places, values = [each["tokens"] for each in held_out], [each[name]["both"] for each in held_out]
        axes.plot(places, values, marker="o", markersize=3, label=label)
        if values:
            axes.annotate(f"{values[-1]:.0f}", (places[-1], values[-1]), (2, above), textcoords="offset points")
    axes.set(xlabel="tokens read in each direction", ylabel="perplexity", yscale="log")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(3, 1)))
    axes.grid(which="both", linewidth=0.3)
    axes.legend(edgecolor="none")
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=120, metadata={"Software": None})
    return file.getvalue()
