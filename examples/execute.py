"""Run notebooks and store their outputs, with nothing but the standard library and matplotlib.

    python examples/execute.py examples/*.ipynb

The code cells of a notebook run in one namespace, in the notebook's folder. What a cell prints, the value of its last
expression and its figures become its outputs, as Jupyter would store them.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

Output = dict[str, Any]


def execute(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook with the outputs of its cells; an error in a cell is raised."""
    import matplotlib

    matplotlib.use("Agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = run_cell("".join(cell["source"]), namespace, count)
            cells.append({**cell, "execution_count": count, "outputs": outputs})
        else:
            cells.append(cell)
    return {**notebook, "cells": cells}


def run_cell(source: str, namespace: dict[str, Any], count: int) -> list[Output]:
    """Run a cell: what it prints, its last value, its figures."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, f"<cell {count}>", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"<cell {count}>", "eval"), namespace)
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        outputs.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs + figures()


def figures() -> list[Output]:
    """The figures that are open, as PNG; they are closed."""
    from matplotlib import pyplot

    found = []
    for number in pyplot.get_fignums():
        png = io.BytesIO()
        pyplot.figure(number).savefig(png, format="png", dpi=80, bbox_inches="tight")
        data = {"image/png": base64.b64encode(png.getvalue()).decode() + "\n", "text/plain": ["<Figure>"]}
        found.append({"data": data, "metadata": {}, "output_type": "display_data"})
    pyplot.close("all")
    return found


def lines(text: str) -> list[str]:
    """Text as notebooks store it."""
    return text.splitlines(keepends=True)


def main() -> None:
    """Run the notebooks that are named, and write them back."""
    paths = [Path(name).resolve() for name in sys.argv[1:]]
    os.environ.setdefault("MPLBACKEND", "Agg")
    for path in paths:
        os.chdir(path.parent)
        done = execute(json.loads(path.read_text("utf-8")))
        path.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", "utf-8")
        sys.stdout.write(f"{path.name}: {path.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
