"""What the layers of any embedder know: one instrument a file."""
