"""Hostile folders of fitted taggers: settings, labels and weights that lie."""

import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tiny_models import make_encoder

import polyseme
from hostile_models.case import OPENS, Make, edit_settings, edit_tensors, register_all
from polyseme.tasks.tagging.tagger import TaggerSettings


@functools.cache
def _fitted() -> Path:
    """A tagger with random weights, bundled with its encoder; made once."""
    place = Path(tempfile.mkdtemp(prefix="polyseme-attack-"))
    make_encoder().save(place / "elmo")
    tagger = polyseme.Tagger(place / "elmo", settings=TaggerSettings(cells=4))
    tagger._begin()
    tagger._take_learned({"scheme": "plain", "labels": ["X", "Y"]})
    tagger._build()
    tagger.save(place / "tagger", bundle=True)
    return place / "tagger"


def model(folder: Path) -> Path:
    return Path(shutil.copytree(_fitted(), folder / "tagger"))


def with_settings(change: Callable[[dict[str, Any]], object]) -> Make:
    return lambda folder: edit_settings(model(folder), change)


def with_tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Make:
    return lambda folder: edit_tensors(model(folder), change)


def first(tensors: dict[str, torch.Tensor]) -> str:
    return max(tensors, key=lambda name: tensors[name].numel())


FIT = "the weights do not fit the settings"
register_all(
    "tasks",
    {
        "a sound one": (model, OPENS),
        "65,000 cells": (with_settings(lambda s: s["settings"].update(cells=65_000)), FIT),
        "10^9 cells": (with_settings(lambda s: s["settings"].update(cells=10**9)), "cells must be a number"),
        "10^9 layers": (with_settings(lambda s: s["settings"].update(layers=10**9)), "layers must be a number"),
        "cells that are text": (with_settings(lambda s: s["settings"].update(cells="x")), "cells must be int"),
        "labels that are a number": (with_settings(lambda s: s.update(learned=3)), ""),
        "no labels": (with_settings(lambda s: s.update(learned={"labels": []})), ""),
        "3,000 labels": (with_settings(lambda s: s["learned"].update(labels=[str(n) for n in range(3_000)])), ""),
        "sources that are a list": (with_settings(lambda s: s.update(sources=[])), ""),
        "sources of noise": (with_settings(lambda s: s.update(sources={"encoder": [3]})), ""),
        "an encoder outside": (
            with_settings(lambda s: s["sources"]["encoder"][0].update(bundled="../../elmo")),
            "should be inside the folder",
        ),
        "another kind of rounding": (with_settings(lambda s: s.update(rounding="float4")), ""),
        "settings that are text": (
            with_settings(lambda s: s.update(settings="x" * 10_000)),
            "must be a table of settings",
        ),
        "the best of noise": (with_settings(lambda s: s.update(best=[])), ""),
        "NaN": (with_tensors(lambda t: t[first(t)].fill_(torch.nan)), "not finite"),
        "1e300 in float64": (
            with_tensors(lambda t: t.update({first(t): t[first(t)].double() + 1e300})),
            "not finite|fit",
        ),
        "another shape": (with_tensors(lambda t: t.update({first(t): torch.ones(3)})), FIT),
        "a missing tensor": (with_tensors(lambda t: t.pop(first(t))), FIT),
    },
)
