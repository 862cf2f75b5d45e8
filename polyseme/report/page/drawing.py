"""SVG charts (bars, lines, vector strips) that are readable on a phone; CSS of the page gives colours and fonts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

WIDTH = 400  # of every chart, in SVG units
COLOURS = 5  # of the page's palette
_LETTER = 7.2  # approximate width of a letter
_ROW = 26
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 14, 12, 40


@dataclass(frozen=True)
class Bar:
    """One bar of a bar chart: label, value, confidence interval, palette colour, and the text beside it."""

    label: str
    value: float
    interval: tuple[float, float] | None = None
    colour: int = 0
    text: str | None = None


def bar_chart(rows: Sequence[Bar], end: float, unit: str = "", chance: float | None = None) -> str:
    """Horizontal bar chart from 0 to ``end`` with values and whiskers; a dashed line marks the level of chance."""
    left = min(170.0, 12 + _LETTER * max(len(row.label) for row in rows))
    room = WIDTH - left - 66
    height = _ROW * len(rows) + 8

    def at(value: float) -> float:
        return left + room * min(1.0, max(0.0, value / end))

    drawn, texts = [], []
    if chance is not None:
        drawn.append(_line(at(chance), 0, at(chance), height, "mark"))
    for number, row in enumerate(rows):
        y = 4 + number * _ROW
        drawn.append(_text(left - 8, y + 15, row.label, "end"))
        drawn.append(
            f'<rect class="f{row.colour}" x="{left:.1f}" y="{y + 3}" width="{max(1.5, at(row.value) - left):.1f}" '
            f'height="{_ROW - 9}" rx="2"/>'
        )
        if row.interval:
            low, high = map(at, row.interval)
            drawn.append(_line(low, y + 11.5, high, y + 11.5, "whisker"))
        beside = max(at(row.value), at(row.interval[1]) if row.interval else 0)
        texts.append(row.text or f"{row.value:.{_places(end)}f}{unit}")
        drawn.append(_text(beside + 6, y + 15, texts[-1], css="number"))
    return _svg(height, drawn, ", ".join(f"{row.label}: {text}" for row, text in zip(rows, texts, strict=True)))


def line_chart(
    series: Mapping[str, Sequence[float | None]],
    places: Sequence[str],
    x_title: str,
    span: tuple[float, float],
    band: Sequence[tuple[float, float]] = (),
) -> str:
    """Line chart with a line for each series and a legend above; ``band`` is the interval around the first series."""
    legend, height = 20 * len(series) + 6, 200
    low, high = span

    def x(place: int) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (place + 0.5) / len(places)

    def y(value: float) -> float:
        return legend + _TOP + (height - _TOP - _BOTTOM) * (1 - (min(high, max(low, value)) - low) / (high - low))

    steps = np.linspace(low, high, 5).tolist()
    decimals = 0 if high > 2 and all(step.is_integer() for step in steps) else _places(high)
    drawn = [_grid(step, y(step), decimals) for step in steps]
    drawn += [_text(x(number), legend + height - 20, place, "middle") for number, place in enumerate(places)]
    drawn.append(_text(WIDTH / 2, legend + height - 3, x_title, "middle", "faint"))
    if band:
        edge = [(x(place), y(low)) for place, (low, _) in enumerate(band)]
        edge += [(x(place), y(high)) for place, (_, high) in reversed(list(enumerate(band)))]
        drawn.append(f'<polygon class="band" points="{_points(edge)}"/>')
    for number, (name, values) in enumerate(series.items()):
        colour = number % COLOURS
        points = [(x(place), y(value)) for place, value in enumerate(values) if value is not None]
        drawn.append(f'<polyline class="l{colour}" points="{_points(points)}"/>')
        drawn += [f'<circle class="f{colour}" cx="{a:.1f}" cy="{b:.1f}" r="3.6"/>' for a, b in points]
        drawn.append(f'<rect class="f{colour}" x="{_LEFT}" y="{20 * number + 5}" width="12" height="12" rx="2"/>')
        drawn.append(_text(_LEFT + 18, 20 * number + 15, name))
    description = "; ".join(f"{name}: {', '.join(map(_number, values))}" for name, values in series.items())
    return _svg(legend + height, drawn, description)


def vector_strips(rows: Sequence[tuple[str, Sequence[float]]], largest: float | None = None) -> str:
    """Vectors as heat-map strips: one colour for positive numbers, one for negative, stronger further from zero."""
    scale = largest or max((abs(number) for _, numbers in rows for number in numbers), default=0) or 1.0
    drawn = []
    for place, (label, numbers) in enumerate(rows):
        y = 46 * place
        drawn.append(_text(0, y + 14, label))
        width = WIDTH / max(1, len(numbers))
        for cell, number in enumerate(numbers):
            shade = min(1.0, abs(number) / scale)
            drawn.append(
                f'<rect class="{"f0" if number >= 0 else "f1"}" x="{cell * width:.2f}" y="{y + 19}" '
                f'width="{width + 0.2:.2f}" height="20" fill-opacity="{shade:.2f}"/>'
            )
    return _svg(46 * len(rows), drawn, "; ".join(label for label, _ in rows))


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _grid(value: float, y: float, places: int) -> str:
    return _line(_LEFT, y, WIDTH - _RIGHT, y, "grid") + _text(_LEFT - 6, y + 4, f"{value:.{places}f}", "end", "faint")


def _line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    named = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'


def _places(largest: float) -> int:
    """Number of decimal places for values of this size."""
    return 2 if largest <= 2 else 1 if largest <= 100 else 0


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _svg(height: float, drawn: Sequence[str], description: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(description, quote=True)}">'
        f"{''.join(drawn)}</svg>"
    )
