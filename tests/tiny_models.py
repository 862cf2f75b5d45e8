"""Random models for tests, made on the spot."""

import torch

from polyseme.backends.elmo.encoder import ElmoEncoder
from polyseme.model import BiLM, BiLMConfig, CharCnnConfig, InputConfig, LstmConfig
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_encoder import ByteCharacters, WordEncoder


def make_encoder(seed: int = 0, spread: float = 3.0, **changes) -> ElmoEncoder:
    """A random model of 3 x 12 dimensions whose clips bite; changes name settings of any of its parts."""
    torch.manual_seed(seed)
    words = changes.pop("words", None)
    characters = changes.pop("characters", CharCnnConfig(dim=4, filters=((1, 4), (2, 6), (3, 8)), max_characters=20))
    lstm = LstmConfig(
        cells=changes.pop("cells", 10),
        dim=6,
        **{k: changes.pop(k) for k in list(changes) if k in LstmConfig.__dataclass_fields__},
    )
    vocabulary = Vocabulary(words) if words else None
    number, width = (len(words), 5 if characters else 6) if words else (0, 0)
    projected = bool(characters) or width != 6
    config = BiLMConfig(InputConfig(6, characters, number, width, projected), lstm, **changes)
    bilm = BiLM(config).eval()
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.mul_(spread) if parameter.dim() > 1 else parameter.normal_(std=0.3)
    spelling = ByteCharacters(characters.max_characters) if characters else None
    return ElmoEncoder(bilm, WordEncoder(spelling, vocabulary))
