"""Plots with matplotlib in one style, and saving them atomically as PNG, SVG or PDF."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.errors import OutputError, require
from polyseme.files import atomic_write, check_writable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Distinguishable with colour blindness and in print (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555")
FAINT = "#999999"
LEGEND = {"frameon": True, "framealpha": 0.9, "edgecolor": "none"}  # lines do not cross its text
KINDS = (".png", ".svg", ".pdf")
_DPI = 150
_GLYPH = re.compile(r"Glyph (\d+) .*missing")  # matplotlib's warning about a character that the font lacks


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches; ``figure.subplots()`` gives axes, `tidy` styles them.

    No global state is touched: nothing is shown, and the caller's matplotlib settings stay as they are.
    """
    figure = require("matplotlib.figure", "analysis").Figure(figsize=(width, height), layout="constrained")
    require("matplotlib.backends.backend_agg", "analysis").FigureCanvasAgg(figure)
    return figure


def tidy(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    """Label axes, and remove what is not needed to read them."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Save a figure atomically, in the format of its file name.

    Text is drawn as it is: a dollar sign starts no formula, and characters that the font lacks give one warning.
    """
    path = check_picture(path)
    for text in figure.findobj(require("matplotlib.text", "analysis").Text):
        text.set_parse_math(False)  # pyright: ignore[reportAttributeAccessIssue]
    with atomic_write(path) as file, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=_DPI)
    glyphs = [_GLYPH.match(str(warning.message)) for warning in caught]
    missing = sorted({chr(int(glyph[1])) for glyph in glyphs if glyph})
    if missing:
        characters = " ".join(missing[:10]) + " …" * (len(missing) > 10)
        warnings.warn(
            f"{path}: the font lacks {characters} and shows boxes; choose another with font.family in matplotlibrc",
            stacklevel=2,
        )


def check_picture(path: str | Path) -> Path:
    """Check, before hours of work, that a figure can be saved under this path."""
    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise OutputError(f"{path} cannot be written: a picture's name ends in {', '.join(KINDS)}")
    check_writable(path)
    require("matplotlib.figure", "analysis")
    return path
