"""Tests of word meaning in context: word-sense disambiguation, word in context."""
