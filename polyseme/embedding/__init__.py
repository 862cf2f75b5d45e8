"""From a stream of sentences to vectors, in order: batching, choice of layers, and the files they are written to."""
