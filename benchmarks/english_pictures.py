"""The pictures of docs/instruments.md that show the model that ships, drawn from the figures of its card.

    python benchmarks/english_pictures.py     # from docs/models/english.json to docs/images/wsd.png and wic.png

`polyseme wsd` and `polyseme wic` with `--plot` draw the same after measuring it again, which takes most of an hour.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from polyseme.analysis.senses.wic import LayerWic, WicResult, draw_wic
from polyseme.analysis.senses.wsd import WsdMethod, WsdResult, WsdScore, draw_wsd
from polyseme.plots import save_figure

DOCS = Path(__file__).parents[1] / "docs"


def wsd_result(result: dict[str, Any]) -> WsdResult:
    methods = tuple(
        WsdMethod(one["name"], one["layer"], tuple(WsdScore(**score) for score in one["scores"]))
        for one in result["methods"]
    )
    return WsdResult(**{**result, "methods": methods})


def wic_result(result: dict[str, Any]) -> WicResult:
    return WicResult(**{**result, "layers": tuple(LayerWic(**layer) for layer in result["layers"])})


def main() -> None:
    parts = json.loads((DOCS / "models" / "english.json").read_text("utf-8"))["parts"]
    save_figure(draw_wsd(wsd_result(parts["wsd"]["result"])), DOCS / "images" / "wsd.png")
    save_figure(draw_wic(wic_result(parts["wic"]["result"])), DOCS / "images" / "wic.png")


if __name__ == "__main__":
    main()
