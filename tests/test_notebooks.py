"""The notebooks in examples/ run from top to bottom, and what they show is stored in them."""

import importlib.util
import json
from pathlib import Path

import pytest

from polyseme.kernels import native

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
MOST_BYTES = 400_000


def load_execute():
    spec = importlib.util.spec_from_file_location("execute", EXAMPLES / "execute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kinds(notebook):
    """For each cell of code, what kinds of output it has."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [[output["output_type"] for output in cell["outputs"]] for cell in code]


@pytest.mark.skipif(native.library() is None, reason="the kernels were not compiled")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_its_outputs_are_stored(path, monkeypatch):
    """Run every cell; the stored notebook has outputs of the same kinds, a picture among them."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(EXAMPLES)
    stored = json.loads(path.read_text("utf-8"))
    assert kinds(load_execute().execute(stored)) == kinds(stored)
    assert sum("display_data" in outputs for outputs in kinds(stored)) >= 2
    assert path.stat().st_size < MOST_BYTES


def test_three_notebooks_are_there_and_linked_from_the_readme():
    readme = (EXAMPLES.parent / "README.md").read_text("utf-8")
    assert len(NOTEBOOKS) == 3
    assert all(f"(examples/{path.name})" in readme for path in NOTEBOOKS)


def test_an_error_in_a_cell_is_raised_and_outputs_are_jupyters():
    """The small executor stores what Jupyter would: text, the last value, figures."""
    run_cell = load_execute().run_cell
    stream, value = run_cell("print('hello')\n1 + 1", {}, 1)
    assert (stream["text"], value["data"]["text/plain"]) == (["hello\n"], ["2"])
    (figure,) = run_cell("import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])", {}, 2)
    assert figure["data"]["image/png"].startswith("iVBORw0KGgo")
    with pytest.raises(ZeroDivisionError):
        run_cell("1 / 0", {}, 3)
