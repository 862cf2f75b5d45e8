"""The HTTP side of the server: middleware, requests, responses, errors, their schema and the OpenAPI document.

Who refuses a request: `hosts` a foreign host or origin (403); `middleware` a wrong key (401), and every request while
the server shuts down (503); `engine/admission.py` more words than can be answered in time (429); `bodies` a body that
is too large (413) or not valid (422); `engine/sizes.py` too many words (413). `errors` turns all into responses.
"""
