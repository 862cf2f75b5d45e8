"""The ELMo network: modules made from frozen settings. It knows neither files nor text."""

from polyseme.model.bilm import BiLM, BiLMState, WordBatch, join
from polyseme.model.config import BiLMConfig, CharCnnConfig, InputConfig, LstmConfig, medium, original, small, tiny
from polyseme.model.scalar_mix import ScalarMix

__all__ = [
    "BiLM",
    "BiLMConfig",
    "BiLMState",
    "CharCnnConfig",
    "InputConfig",
    "LstmConfig",
    "ScalarMix",
    "WordBatch",
    "join",
    "medium",
    "original",
    "small",
    "tiny",
]
