"""Measurements that the claims of the report rest on, and the store that keeps their results."""
