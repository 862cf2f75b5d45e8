"""Random transformers for tests, made on the spot: BERT, RoBERTa and MPNet, each with a small tokeniser of its own."""

import string
from pathlib import Path

import pytest
import torch

from polyseme.backends.transformer.encoder import TransformerEncoder

KINDS = ("BERT", "RoBERTa", "MPNet", "DistilBERT")
LONGEST = 40  # pieces at a time, so that windows are needed soon
_SIZES = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 20}
_TEXT = ["the bank of the river", "he sat on the bank", "she put her books in my bag , unhurriedly ."]


def make_transformer(kind: str = "BERT", **settings) -> TransformerEncoder:
    return TransformerEncoder(make_model(kind), make_tokenizer(kind), name=kind, **settings)


def save_transformer(folder: Path, kind: str = "BERT") -> Path:
    make_model(kind).save_pretrained(folder)
    make_tokenizer(kind).save_pretrained(folder)
    return folder


def make_model(kind: str, seed: int = 0, spread: float = 5.0):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(seed)
    size = len(make_tokenizer(kind))
    if kind == "DistilBERT":
        sizes = {"dim": 16, "n_layers": 4, "n_heads": 2, "hidden_dim": 20, "max_position_embeddings": LONGEST}
        model = transformers.DistilBertModel(transformers.DistilBertConfig(vocab_size=size, **sizes))
    else:
        offset = 0 if kind == "BERT" else 2  # the first rows of RoBERTa's and MPNet's table are not used
        config = getattr(transformers, f"{'Bert' if kind == 'BERT' else kind.replace('RoBERTa', 'Roberta')}Config")(
            vocab_size=size, max_position_embeddings=LONGEST + offset, pad_token_id=1 if offset else 0, **_SIZES
        )
        name = {"BERT": "BertModel", "RoBERTa": "RobertaModel", "MPNet": "MPNetModel"}[kind]
        model = getattr(transformers, name)(config, add_pooling_layer=False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread) if parameter.dim() > 1 else parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def make_tokenizer(kind: str):
    transformers = pytest.importorskip("transformers")
    if kind == "RoBERTa":
        return transformers.RobertaTokenizerFast(**_byte_pairs())
    words = sorted({word for line in _TEXT for word in line.split()} | set("abcdefghijklmnopqrstuvwxyz.,:/'?=-"))
    parts = [f"##{letter}" for letter in string.ascii_lowercase + string.digits] + ["##ing", "##ly"]
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] if kind != "MPNet" else ["<s>", "<pad>", "</s>", "[UNK]"]
    vocabulary = {token: number for number, token in enumerate([*specials, *words, *parts])}
    if kind == "MPNet":
        vocabulary["<mask>"] = len(vocabulary)
        return transformers.MPNetTokenizerFast(vocab=vocabulary)
    return transformers.BertTokenizerFast(vocab=vocabulary)


def _byte_pairs():
    """Every byte is known; merges are learned from a few sentences."""
    import tokenizers

    trained = tokenizers.Tokenizer(tokenizers.models.BPE())
    trained.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        show_progress=False,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=alphabet,
    )
    trained.train_from_iterator(_TEXT, trainer)
    import json

    model = json.loads(trained.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(pair) for pair in model["merges"]]}
