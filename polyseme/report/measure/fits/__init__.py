"""Tasks that the report fits on the spot, in seconds: a linear tagger, four tasks for it, and fine-tuning."""
