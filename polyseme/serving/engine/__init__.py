"""The serving engine: models, request batching, admission control and metrics. Knows nothing of HTTP."""
