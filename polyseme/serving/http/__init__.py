"""The HTTP layer: middleware, request and response bodies, error responses, schemas."""
