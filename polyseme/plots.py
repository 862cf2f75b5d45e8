"""One look for all pictures: plain axes, few lines, readable from across a table."""

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

# Told apart by those who see no red or no green, and in print (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555")
FAINT = "#999999"
LEGEND = {"frameon": True, "framealpha": 0.9, "edgecolor": "none"}  # no line runs through its words
KINDS = (".png", ".svg", ".pdf")
_DOTS = 150  # an inch
_GLYPH = re.compile(r"Glyph (\d+) .*missing")  # how matplotlib tells of each letter that a font lacks


def new_figure(width: float, height: float) -> Figure:
    """An empty picture of so many inches; ``figure.subplots()`` gives axes, `tidy` makes them ours.

    No global state is touched: nothing is shown, and a caller's own matplotlib settings stay what they were.
    """
    figure = require("matplotlib.figure", "analysis").Figure(figsize=(width, height), layout="constrained")
    require("matplotlib.backends.backend_agg", "analysis").FigureCanvasAgg(figure)
    return figure


def tidy(axes: Axes, title: str, across: str, up: str) -> None:
    """Label axes, and take away what is not needed to read them."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a picture, in the format that its name says; the file appears whole or not at all.

    Words are drawn as they are: a dollar opens no formula, and letters that no font has are told in one warning.
    """
    path = check_picture(path)
    for text in figure.findobj(require("matplotlib.text", "analysis").Text):
        text.set_parse_math(False)  # pyright: ignore[reportAttributeAccessIssue]
    with atomic_write(path) as file, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=_DOTS)
    glyphs = [_GLYPH.match(str(warning.message)) for warning in told]
    missing = sorted({chr(int(glyph[1])) for glyph in glyphs if glyph})
    if missing:
        letters = " ".join(missing[:10]) + " …" * (len(missing) > 10)
        warnings.warn(
            f"{path}: the font has no {letters}, and shows boxes; font.family in matplotlibrc chooses another",
            stacklevel=2,
        )


def check_picture(path: str | Path) -> Path:
    """Refuse a name or a place that no picture can have, before hours of work."""
    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise OutputError(f"{path} cannot be written: a picture's name ends in {', '.join(KINDS)}")
    check_writable(path)
    require("matplotlib.figure", "analysis")
    return path
