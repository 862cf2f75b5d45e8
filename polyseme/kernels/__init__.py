"""The hot loops. `reference` defines the numbers; every faster one must equal it."""
