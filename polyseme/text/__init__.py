"""Text to words, words to character ids and back: everything before the first tensor."""
