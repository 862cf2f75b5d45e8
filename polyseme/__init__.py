"""Contextual word vectors for Python: ELMo, BERT's layers and static vectors behind one small interface.

    import polyseme

    elmo = polyseme.load()                                     # the English model that ships, or load("path/to/model")
    elmo.encode(["She sat by the river.", "It was heavy."])    # (2, 512): one vector a text
    elmo.similarity("a river bank", "a bank account")          # (1, 1): cosine similarity
    for layers in elmo.embed([["I", "put", "my", "books", "in", "the", "bag", "."]]):
        layers.shape                                           # (3, 8, 512): layer, word, dim

Open a model: `load` (also called `from_pretrained`), `LanguageModel`, `Client` for a server.
In your own network: `ElmoLayer`, `ScalarMix`. Models on top of any encoder: `Tagger`, `Classifier`, `Pairs`; their
settings are in `polyseme.tasks`. Vectors as arrays: `choose` and `Mix` for layers, `pool` for sentences; as files:
`read_vectors`, and `write_vectors` of `Record`s. Text: `tokenize`. What `load` opens is an `Encoder` with
`EmbedSettings`; an ELMo model is an `ElmoEncoder`. In `show_progress` long work says how far it is.
"""

from typing import TYPE_CHECKING

from polyseme.lazy import lazy_names

if TYPE_CHECKING:
    from polyseme.backends.elmo.encoder import ElmoEncoder
    from polyseme.client import Client
    from polyseme.embedding.encoder import Encoder
    from polyseme.embedding.interfaces import EmbedSettings
    from polyseme.embedding.layers import Mix, choose, pool
    from polyseme.embedding.records import Record
    from polyseme.embedding.writers import read_vectors, write_vectors
    from polyseme.errors import PolysemeError
    from polyseme.layer import ElmoLayer
    from polyseme.lm import LanguageModel
    from polyseme.loading import from_pretrained, load
    from polyseme.model.scalar_mix import ScalarMix
    from polyseme.progress import show_progress
    from polyseme.tasks.sentences.classifier import Classifier
    from polyseme.tasks.sentences.pairs import Pairs
    from polyseme.tasks.tagging.tagger import Tagger
    from polyseme.text.tokenizer import tokenize

__all__ = [
    "Classifier",
    "Client",
    "ElmoEncoder",
    "ElmoLayer",
    "EmbedSettings",
    "Encoder",
    "LanguageModel",
    "Mix",
    "Pairs",
    "PolysemeError",
    "Record",
    "ScalarMix",
    "Tagger",
    "__version__",
    "choose",
    "from_pretrained",
    "load",
    "pool",
    "read_vectors",
    "show_progress",
    "tokenize",
    "write_vectors",
]

__version__ = "0.1.0"

# Names are imported on first use, so that `import polyseme` and `polyseme --help` do not wait for torch.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Classifier": "polyseme.tasks.sentences.classifier",
        "Client": "polyseme.client",
        "ElmoEncoder": "polyseme.backends.elmo.encoder",
        "ElmoLayer": "polyseme.layer",
        "EmbedSettings": "polyseme.embedding.interfaces",
        "Encoder": "polyseme.embedding.encoder",
        "LanguageModel": "polyseme.lm",
        "Mix": "polyseme.embedding.layers",
        "Pairs": "polyseme.tasks.sentences.pairs",
        "PolysemeError": "polyseme.errors",
        "Record": "polyseme.embedding.records",
        "ScalarMix": "polyseme.model.scalar_mix",
        "Tagger": "polyseme.tasks.tagging.tagger",
        "choose": "polyseme.embedding.layers",
        "from_pretrained": "polyseme.loading",
        "load": "polyseme.loading",
        "pool": "polyseme.embedding.layers",
        "read_vectors": "polyseme.embedding.writers",
        "show_progress": "polyseme.progress",
        "tokenize": "polyseme.text.tokenizer",
        "write_vectors": "polyseme.embedding.writers",
    },
)
