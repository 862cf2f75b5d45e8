"""Uses of words in a corpus: index, neighbours, senses, drift, distillation."""
