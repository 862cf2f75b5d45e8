"""The language model training loop: batches, losses, optimizer steps, checkpoints."""
