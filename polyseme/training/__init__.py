"""Training of bidirectional language models from raw text."""
