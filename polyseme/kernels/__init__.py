"""Compute kernels (LSTM, character CNN, cross-entropy): the PyTorch reference, and faster ones that must equal it."""
