"""The routes of the HTTP API, one module a group; each has a `router` that the app factory includes."""
