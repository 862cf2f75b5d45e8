"""BERT and other transformers as encoders of words."""
