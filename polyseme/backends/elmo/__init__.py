"""The ELMo encoder, and one embedding strategy for each kind of hardware."""
