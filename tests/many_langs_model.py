"""A tiny random model in ELMoForManyLangs' format, made on the spot."""

import json
from pathlib import Path

import torch

MARKS = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
CHARS = [*MARKS, *"abehknt好"]
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "the", "bank", "\u3000"]
FILTERS = [[1, 4], [2, 5], [3, 6]]
C, WORD, P, H, N = 5, 3, 4, 7, 15
ARCHITECTURE = {
    "encoder": {"name": "elmo", "projection_dim": P, "cell_clip": 0.5, "proj_clip": 0.4, "dim": H, "n_layers": 2},
    "token_embedder": {
        "name": "cnn",
        "activation": "tanh",
        "filters": FILTERS,
        "n_highway": 1,
        "word_dim": WORD,
        "char_dim": C,
        "max_characters_per_token": 9,
    },
}


def make_many_langs(folder: Path) -> Path:
    """Write the model into a new folder."""
    folder.mkdir()
    torch.manual_seed(0)
    embedder = {
        "word_emb_layer.embedding.weight": torch.randn(len(WORDS), WORD),
        "char_emb_layer.embedding.weight": torch.randn(len(CHARS), C),
        "highways._layers.0.weight": torch.randn(2 * N, N) * 0.3,
        "highways._layers.0.bias": torch.randn(2 * N),
        "projection.weight": torch.randn(P, WORD + N) * 0.3,
        "projection.bias": torch.randn(P),
    }
    for i, (width, count) in enumerate(FILTERS):
        embedder[f"convolutions.{i}.weight"] = torch.randn(count, C, width) * 0.3
        embedder[f"convolutions.{i}.bias"] = torch.randn(count)
    encoder = {}
    for direction in ("forward", "backward"):
        for layer in range(2):
            name = f"{direction}_layer_{layer}"
            encoder[f"{name}.input_linearity.weight"] = torch.randn(4 * H, P)
            encoder[f"{name}.state_linearity.weight"] = torch.randn(4 * H, P)
            encoder[f"{name}.state_linearity.bias"] = torch.randn(4 * H)
            encoder[f"{name}.state_projection.weight"] = torch.randn(P, H)
    torch.save(embedder, folder / "token_embedder.pkl")
    torch.save(encoder, folder / "encoder.pkl")
    lines = [f"{character}\t{i}\n" for i, character in enumerate(CHARS)]
    (folder / "char.dic").write_text("".join(lines), "utf-8")
    lines = [f"{word}\t{i}\n" for i, word in enumerate(WORDS)]
    (folder / "word.dic").write_text("".join(lines), "utf-8")  # U+3000 will be stripped, and known by its absence
    (folder / "tiny.json").write_text(json.dumps(ARCHITECTURE))
    (folder / "config.json").write_text(json.dumps({"config_path": "/home/author/configs/tiny.json"}))
    return folder
