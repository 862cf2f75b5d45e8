"""Tests of word vectors without context: analogy, similarity, spelling."""
