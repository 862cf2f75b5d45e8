"""Classifiers and sentence-pair models over any encoder."""
