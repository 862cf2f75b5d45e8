"""Sequence tagging: a BiLSTM-CRF over any encoder."""
