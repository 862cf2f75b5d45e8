"""Measurements that the claims of the report rest on."""
