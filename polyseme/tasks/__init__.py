"""Models on top of any encoder, their settings, and the one loop that fits them."""

from typing import TYPE_CHECKING

from polyseme.lazy import lazy_names

if TYPE_CHECKING:
    from polyseme.tasks.features.bilstm import CharCnnSettings
    from polyseme.tasks.features.feature_cache import FeatureCache
    from polyseme.tasks.features.mixing import MixSettings
    from polyseme.tasks.fitting.loop import FitSettings
    from polyseme.tasks.sentences.classifier import Classifier
    from polyseme.tasks.sentences.networks import ClassifierSettings, PairsSettings
    from polyseme.tasks.sentences.pairs import Pairs
    from polyseme.tasks.tagging.tagger import Tagger, TaggerSettings

__all__ = [
    "CharCnnSettings",
    "Classifier",
    "ClassifierSettings",
    "FeatureCache",
    "FitSettings",
    "MixSettings",
    "Pairs",
    "PairsSettings",
    "Tagger",
    "TaggerSettings",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "CharCnnSettings": "polyseme.tasks.features.bilstm",
        "Classifier": "polyseme.tasks.sentences.classifier",
        "ClassifierSettings": "polyseme.tasks.sentences.networks",
        "FeatureCache": "polyseme.tasks.features.feature_cache",
        "FitSettings": "polyseme.tasks.fitting.loop",
        "MixSettings": "polyseme.tasks.features.mixing",
        "Pairs": "polyseme.tasks.sentences.pairs",
        "PairsSettings": "polyseme.tasks.sentences.networks",
        "Tagger": "polyseme.tasks.tagging.tagger",
        "TaggerSettings": "polyseme.tasks.tagging.tagger",
    },
)
