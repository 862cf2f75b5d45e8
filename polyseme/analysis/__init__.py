"""Instruments that measure what the layers of any embedder know: senses, grammar, geometry, similarity, spelling."""
