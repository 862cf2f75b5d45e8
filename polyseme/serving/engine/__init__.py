"""What answers requests: models, batching, admission control, metrics. Knows no HTTP."""
