"""Checks of a text before training, with advice on settings."""
