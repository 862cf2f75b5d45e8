"""The claims that the report tests, one file each, named by subject."""
