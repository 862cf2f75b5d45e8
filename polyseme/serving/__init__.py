"""HTTP server for models: an app factory, request batching, and a web page to explore word vectors with.

Nothing is imported here, so that a client or a command can use one part without a web framework.
"""
