"""Hostile folders of transformers: settings that lie, and weights that are not what they should be."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from hostile_models.case import OVER_BUDGET, Make, hostile, pipe, register_all, written
from hostile_models.pickles import _Code

CANNOT = "transformers cannot open"


def model(folder: Path) -> Path:
    from transformer_models import save_transformer

    return save_transformer(folder / "model")


def with_settings(**changes: Any) -> Make:
    def make(folder: Path) -> Path:
        place = model(folder)
        settings = json.loads((place / "config.json").read_text())
        return written(place / "config.json", json.dumps({**settings, **changes})).parent

    return make


def with_tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Make:
    def make(folder: Path) -> Path:
        place = model(folder)
        tensors = load_file(place / "model.safetensors")
        change(tensors)
        save_file(tensors, place / "model.safetensors", {"format": "pt"})
        return place

    return make


WORDS = "embeddings.word_embeddings.weight"
register_all(
    "transformers",
    {
        "10^9 layers": (with_settings(num_hidden_layers=10**9), "num_hidden_layers should be at most 1,000"),
        "a width of 10^9": (with_settings(hidden_size=10**9), "hidden_size should be at most"),
        "10^9 pieces": (with_settings(vocab_size=10**9), "vocab_size should be at most"),
        "a width of 100,000": (with_settings(hidden_size=100_000), OVER_BUDGET),
        "16 million pieces": (with_settings(vocab_size=1 << 24), f"{OVER_BUDGET}|{CANNOT}"),
        "a width of -1": (with_settings(hidden_size=-1), CANNOT),
        "a width that is text": (with_settings(hidden_size="x"), CANNOT),
        "an unknown kind": (with_settings(model_type="nothing"), CANNOT),
        "code of its own": (
            with_settings(model_type="own", auto_map={"AutoConfig": "x.X", "AutoModel": "x.X"}),
            CANNOT,
        ),
        "quantised weights": (
            with_settings(quantization_config={"quant_method": "gptq", "bits": 4}),
            f"{CANNOT}|lacks",
        ),
        "NaN": (with_tensors(lambda t: t[WORDS].fill_(torch.nan)), "not finite"),
        "an infinite weight": (with_tensors(lambda t: t[WORDS][-1].fill_(torch.inf)), "not finite"),
        "weights of 3e38": (with_tensors(lambda t: [w.fill_(3e38) for w in t.values()]), "not finite"),
        "a missing tensor": (with_tensors(lambda t: t.pop(WORDS)), "lacks weights"),
        "another shape": (with_tensors(lambda t: t.update({WORDS: torch.zeros(3, 3)})), CANNOT),
    },
)


@hostile(CANNOT)
def a_pickle_with_code(folder: Path) -> Path:
    place = model(folder)
    (place / "model.safetensors").unlink()
    return written(place / "pytorch_model.bin", pickle.dumps(_Code(), 2)).parent


@hostile(CANNOT)
def weights_in_another_folder(folder: Path) -> Path:
    place = model(folder)
    (place / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {WORDS: "../../../../etc/passwd"}}
    return written(place / "model.safetensors.index.json", json.dumps(index)).parent


@hostile(CANNOT)
def a_tokeniser_that_is_noise(folder: Path) -> Path:
    place = model(folder)
    return written(place / "tokenizer.json", b"\xff" * 100).parent


@hostile("is not a model|cannot")
def settings_that_are_a_pipe(folder: Path) -> Path:
    return pipe(model(folder) / "config.json").parent
