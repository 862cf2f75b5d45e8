"""The training loop that all tasks share: optimizer, early stopping, checkpoints."""
