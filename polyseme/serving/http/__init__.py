"""The HTTP side of the server: middleware, requests, responses, errors, their schema and the OpenAPI document.

Who refuses a request: `middleware` a wrong key (401), and every request while the server shuts down (503);
`engine/admission.py` more words than can be answered in time (429); `requests` a body that is too large (413) or not
valid (400, 422). `errors` turns all of them into responses.
"""
