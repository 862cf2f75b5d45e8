"""Models on top of any encoder, and the one loop that fits them."""
