"""The HTTP side of the server: middleware, requests, responses, errors, their schema and the OpenAPI document."""
