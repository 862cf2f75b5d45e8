"""Input features of task networks: cached encoder vectors, word vectors, characters, layer mixing."""
