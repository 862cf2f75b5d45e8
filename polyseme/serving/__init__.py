"""The models over HTTP: an app made by a factory, requests joined into batches, and a page to explore with.

Nothing is imported here, so that a client or a command can look at one part without a web framework.
"""
