"""What a language model expected at a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyseme.lm import LanguageModel
from polyseme.serving.engine.batcher import Engine


def prediction_engine(name: str, model: LanguageModel) -> Engine:
    """Words, a position and a number, to the likeliest words there: forward, backward, and given both sides."""

    def shown(found: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
        return [{"word": word, "probability": probability} for word, probability in found]

    def predict(words: list[str], position: int, top: int) -> dict[str, Any]:
        ways, both = model.directions, model.directions == ("forward", "backward")
        return {
            "forward": shown(model.predict_next(words[:position], top)) if "forward" in ways else [],
            "backward": shown(model.predict_previous(words[position + 1 :], top)) if "backward" in ways else [],
            "both": shown(model.substitutes(words, position, top)) if both else [],
        }

    return Engine(name, lambda asked: [predict(*one) for one in asked])
