"""Encoders: ELMo, transformers, static vectors."""
