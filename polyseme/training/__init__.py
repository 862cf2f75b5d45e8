"""Raw text to a trained bidirectional language model, with torch, numpy and safetensors alone."""
