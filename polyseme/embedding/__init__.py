"""Embedding: streams of sentences to vectors, in order; batching, layer choice, pooling, output files."""
