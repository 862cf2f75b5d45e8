"""What each layer encodes: linear probes, geometry, learned layer weights."""
